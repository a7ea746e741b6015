"""Files are written whole or not at all, whatever happens to the writer."""
