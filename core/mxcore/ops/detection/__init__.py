"""Detection of objects: boxes, anchors and their targets, suppression of overlaps, proposals, pooling over regions."""
