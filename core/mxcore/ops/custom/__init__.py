"""``Custom``: operators that users write in Python (``mx.operator``), on arrays and in graphs."""
