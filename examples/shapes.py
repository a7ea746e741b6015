"""Pictures of shapes with boxes around them, to learn detection from; a measure of what was found; pictures of it.

Used by ssd_shapes.py and faster_rcnn_shapes.py.
"""

import cv2
import numpy as np

NAMES = "circle", "square", "triangle"
#: Rows of a picture's label.
MOST = 4


def overlaps(a, b):
    """How far boxes overlap, each with each: (n, 4), (m, 4) -> (n, m)."""
    corner, end = np.maximum(a[:, None, :2], b[:, :2]), np.minimum(a[:, None, 2:], b[:, 2:])
    common = np.prod(np.maximum(end - corner, 0), 2)
    area = [np.prod(x[:, 2:] - x[:, :2], 1) for x in (a, b)]
    return common / np.maximum(area[0][:, None] + area[1] - common, 1e-9)


def picture(rng, size):
    """A picture (size, size, 3) and its label (MOST, 5): class, left, top, right, bottom, in parts of the picture."""
    image = rng.integers(0, 60, (size, size, 3)).astype(np.uint8)
    label = np.full((MOST, 5), -1.0, np.float32)
    boxes = np.zeros((0, 4))
    for _ in range(rng.integers(1, MOST + 1)):
        half = rng.uniform(0.1, 0.22) * size
        x, y = rng.uniform(half + 1, size - half - 1, 2)
        box = np.array([[x - half, y - half, x + half, y + half]])
        if len(boxes) and overlaps(box, boxes).max() > 0.05:
            continue
        kind, colour = int(rng.integers(len(NAMES))), rng.integers(110, 256, 3).tolist()
        if kind == 0:
            cv2.circle(image, (round(x), round(y)), round(half), colour, -1)
        elif kind == 1:
            cv2.rectangle(image, (round(x - half), round(y - half)), (round(x + half), round(y + half)), colour, -1)
        else:
            corners = [(x, y - half), (x + half, y + half), (x - half, y + half)]
            cv2.fillPoly(image, [np.array(corners).round().astype(np.int32)], colour)
        label[len(boxes)] = [kind, *(box[0] / size)]
        boxes = np.concatenate([boxes, box])
    return image, label


def pictures(number, size, seed):
    """Pictures (number, 3, size, size) around zero, and their labels (number, MOST, 5)."""
    rng = np.random.default_rng(seed)
    images, labels = zip(*(picture(rng, size) for _ in range(number)))
    return np.stack(images).transpose(0, 3, 1, 2).astype(np.float32) / 128 - 1, np.stack(labels)


def mean_average_precision(found, labels, least=0.5):
    """The mean over classes of the area below precision by recall.

    `found` has for each picture rows of class, score, box (a class below zero: nothing); a box is right if it overlaps
    by `least` with one of its class that no better one took.
    """
    precisions = []
    for kind in range(len(NAMES)):
        rows = [(score, i, box) for i, seen in enumerate(found) for k, score, *box in seen if k == kind]
        rows.sort(key=lambda row: -row[0])
        wanted = [label[label[:, 0] == kind, 1:] for label in labels]
        taken = [np.zeros(len(w), bool) for w in wanted]
        right = np.zeros(len(rows))
        for at, (_, i, box) in enumerate(rows):
            overlap = overlaps(np.array([box]), wanted[i])[0] if len(wanted[i]) else np.zeros(0)
            if overlap.size and overlap.max() >= least and not taken[i][overlap.argmax()]:
                taken[i][overlap.argmax()], right[at] = True, 1
        number = sum(map(len, wanted))
        if not number:
            continue
        hits = right.cumsum()
        precision = np.maximum.accumulate((hits / np.arange(1, len(rows) + 1))[::-1])[::-1]
        precisions.append((precision * right).sum() / number)
    return float(np.mean(precisions)) if precisions else 0.0


def save(path, images, found, least=0.5, scale=4):
    """Write a PNG of pictures side by side, with boxes whose scores are above `least`."""
    drawn = []
    for image, rows in zip(images, found):
        canvas = ((image.transpose(1, 2, 0) + 1) * 128).clip(0, 255).astype(np.uint8)
        canvas = cv2.resize(canvas, None, fx=scale, fy=scale, interpolation=cv2.INTER_NEAREST)
        for kind, score, *box in rows:
            if kind >= 0 and score >= least:
                left, top, right, bottom = (round(float(v) * len(canvas)) for v in box)
                cv2.rectangle(canvas, (left, top), (right, bottom), (255, 255, 255), 1)
                text = f"{NAMES[int(kind)]} {score:.2f}"
                cv2.putText(canvas, text, (left + 2, top + 11), cv2.FONT_HERSHEY_SIMPLEX, 0.4, (255, 255, 255))
        drawn.append(canvas)
    cv2.imwrite(path, np.concatenate(drawn, 1))
