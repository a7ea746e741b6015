"""Elementary functions for the inside of kernels, written so that LLVM vectorises the loop around them.

PyPI's llvmlite comes without a vector mathematics library: ``np.exp`` in a Numba loop is one call of libm per
element. The float32 functions here are branch-free polynomials (fitted for this module, minimax in relative
error) and are merged into the loop that calls them; so are ``exp``, ``expm1``, ``log``, ``log1p``, ``tanh``,
``sigmoid`` and ``softplus`` of float64. Whatever has no polynomial goes to libm. Called from Python each
function is its NumPy meaning.

Largest errors over all finite float32 arguments, in units in the last place (measured by the tests): exp 1,
expm1 2, log 2, log1p 2, tanh 2, sigmoid 2, softplus 2, erf 2. Zeros, denormals, infinities and NaN behave as
NumPy's.

>>> import math
>>> bool(abs(sigmoid(2.0) - 1 / (1 + math.exp(-2))) < 1e-16)
True
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .jit import helper, intrinsic, typed
from .typing import Scalar

F = np.float32

# ------------------------------------------------------------------------------------------------ bits of a
# float width: (mantissa bits, exponent bias, 1.5 * 2**mantissa: adding it leaves the rounded integer in the
# low bits, bits of sqrt(1/2))
_LAYOUT = {32: (23, 127, 0x4B400000, 0x3F3504F3), 64: (52, 1023, 0x4338000000000000, 0x3FE6A09E667F3BCD)}


def _integer(context: Any, builder: Any, real: Any) -> tuple[Scalar, Scalar, Scalar]:
    """Return (bits of the type, its layout, LLVM integer type) of a Numba float type."""
    from llvmlite import ir

    width = real.bitwidth
    return _LAYOUT[width], ir.IntType(width), context.get_value_type(real)


@intrinsic
def _scale(typingctx: Any, p: Any, t: Any) -> Any:
    """p * 2**n, where t = n + 1.5 * 2**mantissa; in two steps, so results may be denormal or infinite."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        (mantissa, bias, magic, _), integer, real = _integer(context, builder, signature.return_type)
        p, t = args
        n = builder.sub(builder.bitcast(t, integer), integer(magic))
        half = builder.ashr(n, integer(1))
        for power in (half, builder.sub(n, half)):
            p = builder.fmul(
                p, builder.bitcast(builder.shl(builder.add(power, integer(bias)), integer(mantissa)), real)
            )
        return p

    return p(p, p), codegen


@intrinsic
def two_to(typingctx: Any, t: Any) -> Any:
    """2**n, where t is as in :func:`_scale` and the result is a normal number: three operations, not nine."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        (mantissa, bias, magic, _), integer, real = _integer(context, builder, signature.return_type)
        power = builder.add(builder.bitcast(args[0], integer), integer(bias - magic))
        return builder.bitcast(builder.shl(power, integer(mantissa)), real)

    return t(t), codegen


def _of_bits(name: str, *more: bool) -> Any:
    """A function of the bits of an unsigned integer of 64 bits, as LLVM has it."""

    def counted(typingctx: Any, x: Any) -> Any:
        from numba import types

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            from llvmlite import ir

            i64, flag = ir.IntType(64), ir.IntType(1)
            f = builder.module.declare_intrinsic(
                f"llvm.{name}", [i64], ir.FunctionType(i64, [i64, *[flag for _ in more]])
            )
            return builder.call(f, [args[0], *map(flag, more)])

        return types.int64(types.uint64), codegen

    return counted


#: How many bits of an unsigned integer are set; how many that are not stand below the lowest one that is.
bits_set, zeros_below = intrinsic(_of_bits("ctpop")), intrinsic(_of_bits("cttz", True))


@intrinsic
def _significand(typingctx: Any, x: Any) -> Any:
    """x / 2**e for a positive normal x, with e such that the result is in [sqrt(1/2), sqrt(2))."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        (mantissa, _, _, root), integer, real = _integer(context, builder, signature.return_type)
        i = builder.sub(builder.bitcast(args[0], integer), integer(root))
        i = builder.add(builder.and_(i, integer((1 << mantissa) - 1)), integer(root))
        return builder.bitcast(i, real)

    return x(x), codegen


@intrinsic
def _exponent(typingctx: Any, x: Any) -> Any:
    """The e of :func:`_significand`, as a float."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        (mantissa, _, magic, root), integer, real = _integer(context, builder, signature.return_type)
        i = builder.ashr(builder.sub(builder.bitcast(args[0], integer), integer(root)), integer(mantissa))
        big = builder.bitcast(builder.add(i, integer(magic)), real)
        return builder.fsub(big, builder.bitcast(integer(magic), real))

    return x(x), codegen


@intrinsic
def copysign(typingctx: Any, x: Any, y: Any) -> Any:
    """|x| with the sign of y."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        from llvmlite import ir

        real = context.get_value_type(signature.return_type)
        f = builder.module.declare_intrinsic("llvm.copysign", [real], ir.FunctionType(real, [real, real]))
        return builder.call(f, args)

    return x(x, x), codegen


@intrinsic
def like(typingctx: Any, x: Any, value: Any) -> Any:
    """A float constant in the type of x: a bare 0.5 is a float64 and would make float64 of all it meets."""
    from numba import types

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.cast(builder, args[1], types.float64, signature.return_type)

    return x(x, types.float64), codegen


@intrinsic
def where(typingctx: Any, condition: Any, x: Any, y: Any) -> Any:
    """x where the condition holds, else y; both are computed, and no branch is taken."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(args[0], *args[1:])

    from numba import types

    return x(types.boolean, x, x), codegen


# -------------------------------------------------------------------------------------------------- exp and
# expm1 x = n ln 2 + r with |r| <= ln(2)/2;  e**r - 1 = r + r*r*Q(r)


@helper
def em1_32(r: Scalar) -> Scalar:
    """``exp(r) - 1`` as a polynomial, for what is left of x without multiples of log 2, in single precision."""
    q = F(0.008333393398) + r * (F(0.001394063817) + r * F(0.0001984394316))
    return r + r * r * (F(0.5) + r * (F(0.1666666635) + r * (F(0.04166636108) + r * q)))


@helper
def em1_64(r: Scalar) -> Scalar:
    """``exp(r) - 1`` as a polynomial, for what is left of x without multiples of log 2, in double precision."""
    q = 2.5052167988228803858e-8 + r * (2.0921503876291790977e-9 + r * 1.605971152511486573e-10)
    q = 2.4801587349656414785e-5 + r * (2.7557319116922976945e-6 + r * (2.7557252212293720958e-7 + r * q))
    q = 0.0083333333333333122940 + r * (0.0013888888888872186901 + r * (1.9841269841343358373e-4 + r * q))
    return r + r * r * (0.5 + r * (0.16666666666666666686 + r * (0.04166666666666669135 + r * q)))


@helper
def _exp32(x: Scalar) -> Scalar:
    x = F(89.0) if x > F(89.0) else (F(-104.0) if x < F(-104.0) else x)
    t = x * F(1.4426950408889634) + F(12582912.0)
    n = t - F(12582912.0)
    r = (x - n * F(0.693359375)) - n * F(-2.12194440e-4)
    return _scale(F(1.0) + em1_32(r), t)


@helper
def _exp64(x: Scalar) -> Scalar:
    x = 710.0 if x > 710.0 else (-746.0 if x < -746.0 else x)
    t = x * 1.4426950408889634 + 6755399441055744.0
    n = t - 6755399441055744.0
    r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10
    return _scale(1.0 + em1_64(r), t)


# Of nothing above zero: 2**n needs no two steps, and what lies above zero gives garbage.
@helper
def _exp32_below(x: Scalar) -> Scalar:
    x = F(-104.0) if x < F(-104.0) else x
    t = x * F(1.4426950408889634) + F(12582912.0)
    n = t - F(12582912.0)
    r = (x - n * F(0.693359375)) - n * F(-2.12194440e-4)
    return two_to(t + F(64.0)) * (F(1.0) + em1_32(r)) * F(2.0**-64)  # the last factor may make it denormal


@helper
def _exp64_below(x: Scalar) -> Scalar:
    x = -746.0 if x < -746.0 else x
    t = x * 1.4426950408889634 + 6755399441055744.0
    n = t - 6755399441055744.0
    r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10
    return two_to(t + 512.0) * (1.0 + em1_64(r)) * 2.0**-512


@helper
def _expm1_32(x: Scalar) -> Scalar:
    a = F(89.0) if x > F(89.0) else (F(-20.0) if x < F(-20.0) else x)
    t = a * F(1.4426950408889634) + F(12582912.0)
    n = t - F(12582912.0)
    r = (a - n * F(0.693359375)) - n * F(-2.12194440e-4)
    y = _scale(em1_32(r) + (F(1.0) - _scale(F(1.0), F(25165824.0) - t)), t)
    return x if x == F(0.0) else y  # keeps -0.0


@helper
def _expm1_64(x: Scalar) -> Scalar:
    a = 710.0 if x > 710.0 else (-40.0 if x < -40.0 else x)
    t = a * 1.4426950408889634 + 6755399441055744.0
    n = t - 6755399441055744.0
    r = (a - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10
    y = _scale(em1_64(r) + (1.0 - _scale(1.0, 13510798882111488.0 - t)), t)
    return x if x == 0.0 else y


@helper
def _expm1_32_below(x: Scalar) -> Scalar:
    a = F(-20.0) if x < F(-20.0) else x
    t = a * F(1.4426950408889634) + F(12582912.0)
    n = t - F(12582912.0)
    r = (a - n * F(0.693359375)) - n * F(-2.12194440e-4)
    s = two_to(t)
    return x if x == F(0.0) else s * em1_32(r) + (s - F(1.0))


@helper
def _expm1_64_below(x: Scalar) -> Scalar:
    a = -40.0 if x < -40.0 else x
    t = a * 1.4426950408889634 + 6755399441055744.0
    n = t - 6755399441055744.0
    r = (a - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10
    s = two_to(t)
    return x if x == 0.0 else s * em1_64(r) + (s - 1.0)


# ---------------------------------------------------------------------------------------------------- log and
# log1p x = 2**e (1 + f);  float32: log(1 + f) = f - f*f/2 + f**3 P(f);  float64: 2 atanh(s) with s = f / (2 +
# f)


@helper
def _log32(x: Scalar) -> Scalar:
    tiny = x < F(1.17549435e-38)
    a = x * F(16777216.0) if tiny else x
    f = _significand(a) - F(1.0)
    e = _exponent(a) - (F(24.0) if tiny else F(0.0))
    p = F(-0.1240508739) + f * (F(0.118910437) + f * (F(-0.1168025128) + f * F(0.06745799892)))
    p = F(-0.2500000978) + f * (F(0.2000213849) + f * (F(-0.1666800478) + f * (F(0.1421911721) + f * p)))
    y = f * f * (f * (F(0.3333331236) + f * p)) + e * F(-2.12194440e-4)
    y = (f + (y - F(0.5) * f * f)) + e * F(0.693359375)
    inf = F(np.inf)
    rest = -inf if x == F(0.0) else (F(np.nan) if x < F(0.0) else x)
    return y if (x > F(0.0)) & (x < inf) else rest


@helper
def _log64(x: Scalar) -> Scalar:
    tiny = x < 2.2250738585072014e-308
    a = x * 18014398509481984.0 if tiny else x
    f = _significand(a) - 1.0
    e = _exponent(a) - (54.0 if tiny else 0.0)
    s = f / (2.0 + f)
    z = s * s
    p = 0.18183584705524492378 + z * (0.15313494835386582266 + z * 0.14801840655604103007)
    p = z * (
        0.66666666666667363158
        + z * (0.39999999999401048837 + z * (0.28571428745681900420 + z * (0.22222198207776656826 + z * p)))
    )
    half = 0.5 * f * f
    y = e * 0.693147180369123816490 - ((half - (s * (half + p) + e * 1.90821492927058770002e-10)) - f)
    rest = -np.inf if x == 0.0 else (np.nan if x < 0.0 else x)
    return y if (x > 0.0) & (x < np.inf) else rest


@helper
def _log1p32(x: Scalar) -> Scalar:
    u = F(1.0) + x
    lost = x - (u - F(1.0)) if x < F(1.0) else F(1.0) - (u - x)  # what rounding took from u
    y = _log32(u) + (lost / u if (u > F(0.0)) & (u < F(np.inf)) else F(0.0))
    return x if u == F(1.0) else y


@helper
def _log1p64(x: Scalar) -> Scalar:
    u = 1.0 + x
    lost = x - (u - 1.0) if x < 1.0 else 1.0 - (u - x)
    y = _log64(u) + (lost / u if (u > 0.0) & (u < np.inf) else 0.0)
    return x if u == 1.0 else y


# ------------------------------------------------------------------------------------- what is made of exp
# and log


# tanh |x| from expm1(-2 |x|), with |x| cut off where the result is 1: no exponent is so small that it needs `_scale`.
@helper
def _tanh32(x: Scalar) -> Scalar:
    a = math.fabs(x)
    a = F(-2.0) * (F(10.0) if a > F(10.0) else a)
    t = a * F(1.4426950408889634) + F(12582912.0)
    n = t - F(12582912.0)
    r = (a - n * F(0.693359375)) - n * F(-2.12194440e-4)
    s = two_to(t)
    e = s * em1_32(r) + (s - F(1.0))
    return copysign(e / (F(2.0) + e), x)


@helper
def _tanh64(x: Scalar) -> Scalar:
    a = math.fabs(x)
    a = -2.0 * (20.0 if a > 20.0 else a)
    t = a * 1.4426950408889634 + 6755399441055744.0
    n = t - 6755399441055744.0
    r = (a - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10
    s = two_to(t)
    e = s * em1_64(r) + (s - 1.0)
    return copysign(e / (2.0 + e), x)


@helper
def _sigmoid32(x: Scalar) -> Scalar:
    e = _exp32_below(-math.fabs(x))
    return (e if x < F(0.0) else F(1.0)) / (F(1.0) + e)


@helper
def _sigmoid64(x: Scalar) -> Scalar:
    e = _exp64_below(-math.fabs(x))
    return (e if x < 0.0 else 1.0) / (1.0 + e)


@helper
def _softplus32(x: Scalar) -> Scalar:
    return (F(0.0) if x < F(0.0) else x) + _log1p32(_exp32_below(-math.fabs(x)))


@helper
def _softplus64(x: Scalar) -> Scalar:
    return (0.0 if x < 0.0 else x) + _log1p64(_exp64_below(-math.fabs(x)))


@helper
def _erf32(x: Scalar) -> Scalar:
    a = math.fabs(x)
    z = x * x
    p = F(-0.02686074942) + z * (F(0.005204428467) + z * (F(-0.000818184889) + z * F(8.538531805e-5)))
    near = x * (F(1.128379167) + z * (F(-0.3761263531) + z * (F(0.1128371965) + z * p)))
    b = F(4.0) if a > F(4.0) else a  # log(1 - erf(b)) is a polynomial there
    q = F(1.148225960e-4) + b * (F(-1.949508308e-5) + b * F(1.212246536e-6))
    q = F(0.02293585288) + b * (F(-0.002826418556) + b * (F(-1.050597993e-4) + b * q))
    q = F(7.733002245e-5) + b * (F(-1.128928265) + b * (F(-0.6348875511) + b * (F(-0.1059679385) + b * q)))
    far = F(1.0) - _exp32_below(q)
    return near if a < F(0.9) else copysign(far, x)


@helper
def _erf64(x: Scalar) -> Scalar:
    return math.erf(x)


# The normal distribution: below zero, gate / density is a polynomial of (|x| - 3) / (|x| + 3), so that both cost one
# exp.
@helper
def _bell32(x: Scalar) -> Scalar:
    a = math.fabs(x)
    a = F(15.0) if a > F(15.0) else a  # where it is 0
    return _exp32_below(F(-0.5) * a * a)


@helper
def _gate32(x: Scalar) -> Scalar:
    a = math.fabs(x)
    a = F(15.0) if a > F(15.0) else a
    t = (a - F(3.0)) / (a + F(3.0))
    p = F(-0.0009828225208) + t * (F(-0.0003385464281) + t * (F(0.0001145047418) + t * F(5.267678308e-05)))
    p = F(-0.04621323451) + t * (F(0.006131811288) + t * (F(0.002904213928) + t * p))
    p = (F(0.1215139474) + t * (F(-0.2064026219) + t * (F(0.1232250523) + t * p))) * _bell32(x)
    return p if x < F(0.0) else F(1.0) - p


@helper
def _gate64(x: Scalar) -> Scalar:
    return 0.5 * (1.0 + math.erf(x * 0.7071067811865476))


@helper
def _density32(x: Scalar) -> Scalar:
    return F(0.3989422804014327) * _bell32(x)


@helper
def _density64(x: Scalar) -> Scalar:
    return 0.3989422804014327 * _exp64_below(-0.5 * x * x)


@helper
def _power(x: Scalar, y: Scalar) -> Scalar:
    """|x|**y by float64 exp and log, then C's rules for signs and special cases; good for float32 only."""
    a = math.fabs(x)
    r = _exp64(0.0 if a == 1.0 else y * _log64(a))
    whole = np.floor(y) == y
    odd = whole & (2.0 * np.floor(0.5 * y) != y)
    r = -r if odd & (copysign(1.0, x) < 0.0) else r
    r = r if whole | (x >= 0.0) | (x == -np.inf) else np.nan
    return 1.0 if (y == 0.0) | (x == 1.0) else r


@helper
def _power32(x: Scalar, y: Scalar) -> Scalar:
    return F(_power(np.float64(x), np.float64(y)))


@helper
def _power64(x: Scalar, y: Scalar) -> Scalar:
    return x**y


def _sigmoid(x: Scalar) -> Scalar:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1.0) / (1.0 + e)


#: The names under which kernels and fused source call these functions; each takes float32 or float64.
exp = typed(np.exp, _exp32, _exp64)
expm1 = typed(np.expm1, _expm1_32, _expm1_64)
exp_below = typed(np.exp, _exp32_below, _exp64_below)  # for no argument above zero
expm1_below = typed(np.expm1, _expm1_32_below, _expm1_64_below)
log = typed(np.log, _log32, _log64)
log1p = typed(np.log1p, _log1p32, _log1p64)
tanh = typed(np.tanh, _tanh32, _tanh64)
sigmoid = typed(_sigmoid, _sigmoid32, _sigmoid64)
softplus = typed(lambda x: np.logaddexp(x, 0), _softplus32, _softplus64)
erf = typed(np.vectorize(math.erf), _erf32, _erf64)
# The normal distribution function.
gate = typed(np.vectorize(lambda x: 0.5 * math.erfc(-x * math.sqrt(0.5))), _gate32, _gate64)
density = typed(lambda x: np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi), _density32, _density64)  # its derivative
power = typed(np.power, _power32, _power64)

# ------------------------------------------------------------------------ the rest of the names an expression
# may use


@helper
def rsqrt(x: Scalar) -> Scalar:
    """1 / sqrt(x)"""
    return like(x, 1.0) / np.sqrt(x)


@helper
def rcbrt(x: Scalar) -> Scalar:
    """1 / cbrt(x)"""
    return like(x, 1.0 / np.cbrt(np.float64(x)))


@helper
def relu(x: Scalar) -> Scalar:
    """x, or 0 where it is negative."""
    return where(x < like(x, 0.0), like(x, 0.0), x)


@helper
def gamma(x: Scalar) -> Scalar:
    """The gamma function."""
    return like(x, math.gamma(np.float64(x)))


@helper
def lgamma(x: Scalar) -> Scalar:
    """The logarithm of the absolute value of the gamma function."""
    return like(x, math.lgamma(np.float64(x)))


@helper(inline=False)
def _digamma(x: Scalar) -> Scalar:
    total = 0.0
    if x <= 0.0:
        if x == np.floor(x):
            return np.nan
        total = -math.pi / math.tan(math.pi * (x - np.floor(x + 0.5)))
        x = 1.0 - x
    while x < 10.0:
        total -= 1.0 / x
        x += 1.0
    z = 1.0 / (x * x)  # the asymptotic series, with Bernoulli's numbers
    tail = 1 / 240 - z * (1 / 132 - z * (691 / 32760 - z / 12))
    tail = z * (1 / 12 - z * (1 / 120 - z * (1 / 252 - z * tail)))
    return total + math.log(x) - 0.5 / x - tail


@helper
def digamma(x: Scalar) -> Scalar:
    """The derivative of :func:`lgamma`."""
    return like(x, _digamma(np.float64(x)))


@helper(inline=False)
def _erfinv(x: Scalar) -> Scalar:
    a = math.fabs(x)
    if not a < 1.0:
        return math.copysign(np.inf, x) if a == 1.0 else np.nan
    log_ = math.log1p(-a * a)
    t = 4.3307467508 + 0.5 * log_
    y = math.sqrt(math.sqrt(t * t - log_ / 0.147) - t)  # Winitzki's estimate, then Halley's steps
    for _ in range(3):
        wrong = (1.0 - a) - math.erfc(y) if a > 0.5 else math.erf(y) - a  # erf(y) - a, without cancellation
        y -= wrong / (1.1283791670955126 * math.exp(-y * y) + y * wrong)
    return math.copysign(y, x)


@helper
def _erfinv32(x: Scalar) -> Scalar:
    """x times a polynomial of w = -log(1 - x * x), or of its root for large w (fitted for this module); in float64."""
    a = np.float64(x)
    w = -_log64((1.0 - a) * (1.0 + a))
    v, s = w - 2.5, np.sqrt(w) - 3.25
    p = -3.4346306128e-06 + v * (
        4.65899669415e-07 + v * (1.804144516e-08 + v * (-8.77342589961e-09 + v * 3.35219537097e-10))
    )
    p = -0.00125274461446 + v * (0.000218282663567 + v * (-4.96194302299e-06 + v * p))
    p = 1.50140935351 + v * (0.246640287617 + v * (-0.00417733942206 + v * p))
    q = 0.000966094075887 + s * (
        -0.000366997539497 + s * (1.46273485513e-06 + s * (8.52325565955e-05 + s * -3.04323561131e-05))
    )
    q = -0.00375189413962 + s * (0.00248826517278 + s * (-0.00168397085796 + s * q))
    q = 3.08388560649 + s * (1.00525899978 + s * (0.0053711971887 + s * q))
    y = a * (p if w <= 5.0 else q)
    return F(y if math.fabs(a) < 1.0 else (a * np.inf if math.fabs(a) == 1.0 else np.nan))


@helper
def _hypot32(x: Scalar, y: Scalar) -> Scalar:
    a, b = np.float64(x), np.float64(y)
    endless = (math.fabs(x) == F(np.inf)) | (math.fabs(y) == F(np.inf))
    return F(np.inf) if endless else F(np.sqrt(a * a + b * b))


@helper
def _hypot64(x: Scalar, y: Scalar) -> Scalar:
    return math.hypot(x, y)


@helper
def _modulo32(x: Scalar, y: Scalar) -> Scalar:
    a, b = np.float64(x), np.float64(y)
    q = np.floor(a / b)
    if math.fabs(q) < 536870912.0 and math.fabs(b) < np.inf:  # then q * b is exact
        r = a - q * b
        return F(r + b if r * b < 0.0 else (r if r != 0.0 else copysign(0.0, b)))
    return F(0.0) if y == F(0.0) else np.mod(x, y)


@helper
def _modulo64(x: Scalar, y: Scalar) -> Scalar:
    return 0.0 if y == 0.0 else np.mod(x, y)


#: The inverse of :func:`erf`; the length of a vector; the remainder with the divisor's sign, 0 where that is 0.
erfinv = typed(np.vectorize(lambda x: _erfinv(x)), _erfinv32, _erfinv)
hypot = typed(np.hypot, _hypot32, _hypot64)
modulo = typed(lambda x, y: np.where(y == 0, 0, np.mod(x, np.where(y == 0, 1, y))), _modulo32, _modulo64)


#: What NumPy calls by the same name (or nearly) and Numba compiles as it stands.
(
    log2,
    log10,
    sqrt,
    cbrt,
    sin,
    cos,
    tan,
    arcsin,
    arccos,
    arctan,
    sinh,
    cosh,
    arcsinh,
    arccosh,
    arctanh,
    floor,
    ceil,
    trunc,
    rint,
    abs,
    sign,
    square,
    reciprocal,
    isnan,
    isinf,
    maximum,
    minimum,
    arctan2,
    fmod,
    mod,
    fix,
    floordiv,
) = (
    np.log2,
    np.log10,
    np.sqrt,
    np.cbrt,
    np.sin,
    np.cos,
    np.tan,
    np.arcsin,
    np.arccos,
    np.arctan,
    np.sinh,
    np.cosh,
    np.arcsinh,
    np.arccosh,
    np.arctanh,
    np.floor,
    np.ceil,
    np.trunc,
    np.rint,
    np.abs,
    np.sign,
    np.square,
    np.reciprocal,
    np.isnan,
    np.isinf,
    np.maximum,
    np.minimum,
    np.arctan2,
    np.fmod,
    np.mod,
    np.trunc,
    np.floor_divide,
)
