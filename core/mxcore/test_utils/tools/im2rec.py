"""``python im2rec.py``: `mxcore im2rec` as a script, for those who start it by its path (`get_im2rec_path`)."""

import runpy

if __name__ == "__main__":
    runpy.run_module("mxcore_io_rec.im2rec", run_name="__main__", alter_sys=True)
