"""House rules: checkers, their own tests, and their application to this tree."""
