"""Parameters of the iterators as tables: name -> kind, default and meaning, in one place.

The tables check and parse what callers give (MXNet's strings, such as ``"(3, 28, 28)"``, included) and
write the parameter section of the iterators' docstrings.
"""

from __future__ import annotations

import inspect
import textwrap
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, TypeAlias, TypeVar

from mxcore.base import MXNetWarning, error
from mxcore.plugin import Bool, Enum, Float, Floats, Int, Param, Shape, Str

__all__ = ["AUGMENT", "BATCH", "DET_AUGMENT", "DET_LABEL", "LABEL", "NORMALIZE", "SOURCE", "documented", "parse"]

Table: TypeAlias = dict[str, Param]
Class = TypeVar("Class", bound=type)

_DTYPES = ("float32", "uint8", "int8")
_PATH = "path or fsspec URL"

SOURCE: Table = {
    "path_imgrec": Str(doc=f"Record file, {_PATH}; a folder of ``.rec`` files, or several with ``;`` between."),
    "path_imgidx": Str(
        "",
        doc=f"Index of the record file, {_PATH}. Without one, an index beside the file is used if "
        "it fits, else the records' headers are read.",
    ),
    "path_imglist": Str(
        "",
        doc="List file whose labels replace those in the records: "
        "lines of record id, labels and image path with tabs between.",
    ),
    "data_shape": Shape(doc="Shape of one image: (channels, height, width) with 1, 3 or 4 channels."),
    "num_parts": Int(1, ge=1, doc="Divide the records into so many parts, as even as can be."),
    "part_index": Int(0, ge=0, doc="Which of the parts to read. With `shuffle` each epoch divides anew."),
    "shuffle": Bool(False, doc="Put all records into a new order in every epoch."),
    "seed": Int(0, doc="Decides the order."),
    "shuffle_chunk_size": Int(0, ge=0, doc="Without effect: `shuffle` always reaches over the whole file."),
    "shuffle_chunk_seed": Int(0, doc="Without effect."),
    "seed_aug": Int(None, doc="Decides the random augmentations; None: as `seed` does."),
    "on_error": Enum(
        "raise warn skip",
        "raise",
        doc="What to do about damaged records and unreadable images: raise, or "
        "leave them out, with a warning each or silently; `skipped` counts them, and `pad` grows.",
    ),
    "verbose": Bool(True, doc="Tell the logger ``mxcore.io`` what is read."),
}

BATCH: Table = {
    "batch_size": Int(ge=1, doc="Images per batch."),
    "round_batch": Bool(
        True,
        doc="Fill the last batch from the next epoch, which then starts behind those images; "
        "otherwise from the start of the same epoch. Either way `pad` counts them.",
    ),
    "prefetch_buffer": Int(4, ge=0, doc="Batches to make ahead."),
    "preprocess_threads": Int(
        4, ge=1, doc="Threads that decode, at most as many as there are processors. The batches do not depend on it."
    ),
    "dtype": Enum(_DTYPES, None, doc="Type of the images."),
    "data_name": Str("data", doc="Name of the data array."),
    "label_name": Str("softmax_label", doc="Name of the label array."),
    "ctx": Str("cpu", doc="Without effect: batches are made in host memory."),
    "device_id": Int(0, doc="Without effect."),
}

LABEL: Table = {"label_width": Int(1, ge=1, doc="Labels per image.")}

DET_LABEL: Table = {
    "label_width": Int(-1, doc="Numbers in a record's label; -1: any."),
    "label_pad_width": Int(
        0, doc="Pad labels to so many numbers; 0 or -1: to the longest, which reads every record's header first."
    ),
    "label_pad_value": Float(-1.0, doc="What labels are padded with."),
}

AUGMENT: Table = {
    "aug_seq": Str("aug_default", doc="Names of augmenters; only MXNet's default one exists."),
    "resize": Int(-1, doc="Scale the shorter edge to this, in pixels, before all else; -1: do not."),
    "rand_crop": Bool(False, doc="Crop at a random place instead of the centre."),
    "random_resized_crop": Bool(False, doc="Crop a part of random area and aspect, scaled to `data_shape`."),
    "max_rotate_angle": Int(0, ge=0, doc="Rotate by random whole degrees in [-v, v]."),
    "max_aspect_ratio": Float(
        0.0, doc="Change width / height to a random ratio in [1 - v, 1 + v], or [min, max] with `min_aspect_ratio`."
    ),
    "min_aspect_ratio": Float(None, doc="Lower end of that range."),
    "max_shear_ratio": Float(0.0, ge=0, doc="Shear by a random ratio in [-v, v]."),
    "max_crop_size": Int(-1, doc="Crop a square of random size, in pixels, scaled to `data_shape`; -1: do not."),
    "min_crop_size": Int(-1, doc="Smallest such square."),
    "max_random_scale": Float(1.0, doc="Scale by a random factor in [min, max]."),
    "min_random_scale": Float(1.0, doc="Lower end of that range."),
    "max_random_area": Float(1.0, doc="`random_resized_crop`: largest share of the area."),
    "min_random_area": Float(1.0, doc="`random_resized_crop`: smallest share of the area."),
    "max_img_size": Float(1e10, doc="Largest width and height, in pixels, after scaling and rotating."),
    "min_img_size": Float(0.0, doc="Smallest width and height, in pixels, after scaling and rotating."),
    "brightness": Float(0.0, ge=0, doc="Multiply by a random factor in [1 - v, 1 + v]."),
    "contrast": Float(0.0, ge=0, doc="Blend with the mean grey by a random factor in [1 - v, 1 + v]."),
    "saturation": Float(0.0, ge=0, doc="Blend with the grey image by a random factor in [1 - v, 1 + v]."),
    "pca_noise": Float(0.0, ge=0, doc="Standard deviation of noise along ImageNet's principal colours."),
    "random_h": Int(0, ge=0, doc="Add a random whole number in [-v, v] to the hue, which is 0 to 180."),
    "random_s": Int(0, ge=0, doc="The same for the saturation, 0 to 255, in HLS space."),
    "random_l": Int(0, ge=0, doc="The same for the lightness, 0 to 255."),
    "rotate": Int(-1, doc="Rotate by this angle, in degrees, instead of a random one; not above 0: do not."),
    "fill_value": Int(255, ge=0, le=255, doc="Grey value where an image has no pixel."),
    "inter_method": Int(
        1,
        ge=0,
        le=10,
        doc="Interpolation: 0 nearest, 1 linear, 2 cubic, "
        "3 area, 4 Lanczos, 9 cubic to enlarge and area to shrink, 10 random.",
    ),
    "pad": Int(0, ge=0, doc="Pixels to put around the image before cropping."),
}

_MEAN_STD: Table = {
    "mean_img": Str(
        "",
        doc="File of a mean image to subtract, in the format of ``nd.save``; made from the data if it does not exist.",
    ),
    "mean_r": Float(0.0, doc="Subtract from the red channel (or the only one)."),
    "mean_g": Float(0.0, doc="Subtract from the green channel."),
    "mean_b": Float(0.0, doc="Subtract from the blue channel."),
    "mean_a": Float(0.0, doc="Subtract from the alpha channel."),
    "std_r": Float(1.0, doc="Divide the red channel (or the only one) by this."),
    "std_g": Float(1.0, doc="Divide the green channel by this."),
    "std_b": Float(1.0, doc="Divide the blue channel by this."),
    "std_a": Float(1.0, doc="Divide the alpha channel by this."),
    "scale": Float(1.0, doc="Multiply by this, after the mean is subtracted."),
}

NORMALIZE: Table = dict(
    mirror=Bool(False, doc="Mirror every image left to right."),
    rand_mirror=Bool(False, doc="Mirror every second image, by chance."),
    **_MEAN_STD,
    max_random_contrast=Float(
        0.0, ge=0, doc="Multiply by a random factor in [1 - v, 1 + v], after the mean is subtracted."
    ),
    max_random_illumination=Float(0.0, ge=0, doc="Add a random number in [-v, v], after the mean is subtracted."),
)

_BOUNDS = "one value for all samplers or one for each"

DET_AUGMENT: Table = dict(
    aug_seq=Str("det_aug_default", doc="Names of augmenters; only MXNet's default one exists."),
    resize=Int(-1, doc="Scale the shorter edge to this, in pixels, before all else; -1: do not."),
    rand_crop_prob=Float(0.0, doc="Probability of a random crop."),
    num_crop_sampler=Int(1, ge=1, doc="How many samplers of crops there are; they are tried in random order."),
    min_crop_scales=Floats((0.0,), doc=f"Smallest scale of a crop, {_BOUNDS}."),
    max_crop_scales=Floats((1.0,), doc=f"Largest scale of a crop, {_BOUNDS}."),
    min_crop_aspect_ratios=Floats((1.0,), doc=f"Smallest width / height, {_BOUNDS}."),
    max_crop_aspect_ratios=Floats((1.0,), doc=f"Largest width / height, {_BOUNDS}."),
    min_crop_overlaps=Floats((0.0,), doc=f"Smallest intersection over union of crop and an object, {_BOUNDS}."),
    max_crop_overlaps=Floats((1.0,), doc=f"Largest intersection over union, {_BOUNDS}."),
    min_crop_sample_coverages=Floats((0.0,), doc=f"Smallest share of the crop that an object covers, {_BOUNDS}."),
    max_crop_sample_coverages=Floats((1.0,), doc=f"Largest such share, {_BOUNDS}."),
    min_crop_object_coverages=Floats((0.0,), doc=f"Smallest share of an object that lies in the crop, {_BOUNDS}."),
    max_crop_object_coverages=Floats((1.0,), doc=f"Largest such share, {_BOUNDS}."),
    max_crop_trials=Shape((25,), doc=f"Tries to find a crop, {_BOUNDS}."),
    crop_emit_mode=Enum(
        "center overlap",
        "center",
        doc="Which objects a crop loses: those whose centre lies outside, or "
        "those of which less than `emit_overlap_thresh` is inside.",
    ),
    emit_overlap_thresh=Float(0.3, doc="Least share of an object for ``crop_emit_mode='overlap'``."),
    rand_pad_prob=Float(0.0, doc="Probability of putting the image on a larger canvas."),
    max_pad_scale=Float(1.0, doc="Largest edge of that canvas, as a multiple of the image's."),
    max_random_hue=Int(0, ge=0, doc="Add a random whole number in [-v, v] to the hue, which is 0 to 180."),
    random_hue_prob=Float(0.0, doc="Probability of that."),
    max_random_saturation=Int(0, ge=0, doc="The same for the saturation, 0 to 255, in HLS space."),
    random_saturation_prob=Float(0.0, doc="Probability of that."),
    max_random_illumination=Int(0, ge=0, doc="The same for the lightness, 0 to 255."),
    random_illumination_prob=Float(0.0, doc="Probability of that."),
    max_random_contrast=Float(0.0, ge=0, doc="Multiply by a random factor in [1 - v, 1 + v]."),
    random_contrast_prob=Float(0.0, doc="Probability of that."),
    rand_mirror_prob=Float(0.0, doc="Probability of mirroring left to right."),
    fill_value=Int(127, ge=0, le=255, doc="Grey value of the canvas."),
    inter_method=AUGMENT["inter_method"],
    resize_mode=Enum(
        "fit force shrink",
        "force",
        doc="How an image comes into `data_shape`: stretched (force), scaled to "
        "fit at the upper left (fit), or scaled down only (shrink).",
    ),
    **_MEAN_STD,
)
DET_AUGMENT.update(
    (f"std_{c}", Float(0.0, doc=f"Divide the {w} channel by this; 0: do not."))
    for c, w in zip("rgba", ("red", "green", "blue", "alpha"))
)


def parse(owner: str, tables: Sequence[Table], given: Mapping[str, Any]) -> SimpleNamespace:
    """Parse keyword arguments.

    Parameters
    ----------
    owner : str
        Name for messages.
    tables : sequence of dict
        The tables that apply.
    given : dict
        What the caller gave. Unknown names are left out with a warning, as MXNet silently does.

    Returns
    -------
    types.SimpleNamespace
        Every parameter, parsed.

    Raises
    ------
    MXNetError
        (also TypeError or ValueError) naming the parameter.

    Examples
    --------
    >>> parse("it", [LABEL], {"label_width": "2"}).label_width
    2
    """
    specs = {name: spec for table in tables for name, spec in table.items()}
    unknown = [name for name in given if name not in specs]
    if unknown:
        import difflib

        near = {name: difflib.get_close_matches(name, specs, 1) for name in unknown}
        told = ", ".join(f"{name!r} (meant {near[name][0]!r}?)" if near[name] else repr(name) for name in unknown)
        warnings.warn(f"{owner} has no parameter {told}: left out", MXNetWarning, stacklevel=4)
    values = {}
    for name, spec in specs.items():
        if name in given:
            try:
                values[name] = spec.parse(given[name])
            except (TypeError, ValueError) as e:
                kind = TypeError if isinstance(e, TypeError) else ValueError
                raise error(kind, f"{owner}: parameter {name} {e}") from None
        elif spec.required:
            raise error(TypeError, f"{owner} needs parameter {name}: {spec.doc}")
        else:
            values[name] = spec.default
    return SimpleNamespace(**values)


def documented(tables: Sequence[Table]) -> Callable[[Class], Class]:
    """Make a class decorator that writes the tables' parameters into the docstring, at {parameters}."""

    def decorate(cls: Class) -> Class:
        lines = []
        for table in tables:
            for name, spec in table.items():
                kind = "str" if isinstance(spec, Str) else spec.allowed()
                lines.append(f"{name} : {kind}" + ("" if spec.required else f", default {spec.default!r}"))
                lines += textwrap.wrap(spec.doc, 108, initial_indent=" " * 4, subsequent_indent=" " * 4)
        # Python dedents docstrings from 3.13 on.
        cls.__doc__ = inspect.cleandoc(cls.__doc__ or "").replace("{parameters}", "\n".join(lines))
        return cls

    return decorate
