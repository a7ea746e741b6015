"""The passes: functions from graph to graph, one a module, and the settings that say which of them run."""
