"""Plain NumPy and loops: what the operators of detection compute, box by box."""

import numpy as np


def iou(a, b, more=0.0):
    """How far two boxes overlap, by corners."""
    width = min(a[2], b[2]) - max(a[0], b[0]) + more
    height = min(a[3], b[3]) - max(a[1], b[1]) + more
    if not (width > 0 and height > 0):
        return 0.0

    def area(c):
        return max(c[2] - c[0] + more, 0) * max(c[3] - c[1] + more, 0)

    return width * height / (area(a) + area(b) - width * height)


def corners(b, form):
    """A box by its corners."""
    b = np.asarray(b)
    return b if form == "corner" else np.concatenate([b[:2] - b[2:] / 2, b[:2] + b[2:] / 2])


def nms(rows, overlap, valid, topk, ids, background, force, form):
    """Places of the rows (class, score, box) that are left, the best first."""
    seen = [i for i, r in enumerate(rows) if r[1] > valid and not (ids and r[0] == background)]
    seen = sorted(seen, key=lambda i: -rows[i][1])[: len(rows) if topk < 0 else topk]
    kept = []
    for i in seen:
        rivals = [j for j in kept if force or not ids or rows[j][0] == rows[i][0]]
        if not any(iou(corners(rows[i][2:6], form), corners(rows[j][2:6], form)) > overlap for j in rivals):
            kept.append(i)
    return kept


def matches(score, threshold):
    """Pairs of rows and columns, the best first."""
    pairs = sorted(np.ndindex(*score.shape), key=lambda at: -score[at])
    rows, columns = {}, {}
    for i, j in pairs:
        if score[i, j] > threshold and i not in rows and j not in columns:
            rows[i], columns[j] = j, i
    return rows


def targets(anchors, label, threshold):
    """For each anchor the number of its box, or None."""
    boxes = list(label)
    for end, r in enumerate(label):
        if r[0] == -1:
            boxes = boxes[:end]
            break
    overlap = np.array([[iou(a, b[1:5]) for b in boxes] for a in anchors]).reshape(len(anchors), len(boxes))
    found = {}
    free = overlap.copy()
    while free.size and free.max() > 1e-6:
        i, j = np.unravel_index(free.argmax(), free.shape)
        found[i] = j
        free[i, :] = free[:, j] = -1
    for i, row in enumerate(overlap):
        if i not in found and row.size and row.max() > threshold:
            found[i] = int(row.argmax())
    return [found.get(i) for i in range(len(anchors))], len(boxes)


def pixel(image, y, x):
    """An image between its pixels, at most one of them beyond it."""
    h, w = image.shape
    if not (-1 <= y <= h and -1 <= x <= w):
        return 0.0
    y, x = min(max(y, 0), h - 1), min(max(x, 0), w - 1)
    i, j = min(int(y), h - 1), min(int(x), w - 1)
    below, right = min(i + 1, h - 1), min(j + 1, w - 1)
    v, u = y - i, x - j
    return (image[i, j] * (1 - u) + image[i, right] * u) * (1 - v) + (
        image[below, j] * (1 - u) + image[below, right] * u
    ) * v


def align(data, rois, size, scale, ratio, aligned, sensitive):
    """Regions cut into bins, averaged over places of each bin."""
    shift, parts = 0.5 * aligned, size[0] * size[1] if sensitive else 1
    out = np.zeros((len(rois), data.shape[1] // parts, *size))
    for r, c, i, j in np.ndindex(*out.shape):
        image, x0, y0, x1, y1 = rois[r]
        x0, y0, x1, y1 = (v * scale - shift for v in (x0, y0, x1, y1))
        h, w = (v if aligned else max(v, 1) for v in (y1 - y0, x1 - x0))
        dy, dx = h / size[0], w / size[1]
        rows, columns = (ratio if ratio > 0 else int(np.ceil(v)) for v in (dy, dx))
        plane = data[int(image), c * parts + (i * size[1] + j) * sensitive]
        seen = [
            pixel(plane, y0 + i * dy + (a + 0.5) * dy / rows, x0 + j * dx + (b + 0.5) * dx / columns)
            for a in range(rows)
            for b in range(columns)
        ]
        out[r, c, i, j] = sum(seen) / max(len(seen), 1)
    return out
