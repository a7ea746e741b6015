"""Special functions over any array namespace: rational approximations, so that no device needs its own library."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["digamma", "erf", "erfinv", "gamma", "gammaln", "half_away", "rint", "sigmoid", "softplus"]


def sigmoid(xp: Any, x: Any) -> Any:
    """1 / (1 + exp(-x)), without overflow."""
    e = xp.exp(-xp.abs(x))
    return xp.where(x >= 0, 1 / (1 + e), e / (1 + e))


def softplus(xp: Any, x: Any) -> Any:
    """log(1 + exp(x)), without overflow."""
    return xp.maximum(x, x.dtype.type(0)) + xp.log1p(xp.exp(-xp.abs(x)))


def rint(xp: Any, x: Any) -> Any:
    """Nearest integer; MXNet takes the lower of two equally near ones."""
    y = xp.rint(x)  # the even one of two
    return y - (y - x == 0.5)


def half_away(xp: Any, x: Any) -> Any:
    """Nearest integer, halves away from zero, as C's round."""
    y = xp.trunc(x)
    return y + (x - y >= 0.5) - (y - x >= 0.5)  # not x + 0.5, which is itself rounded


def _poly(x: Any, coefficients: Any) -> Any:
    """Horner's rule, highest power first."""
    y = x * 0 + coefficients[0]
    for c in coefficients[1:]:
        y = y * x + c
    return y


# erf and erfc: W. J. Cody, "Rational Chebyshev approximations for the error function", Math. Comp. 23, 1969.
_A = (
    1.85777706184603153e-1,
    3.16112374387056560e0,
    1.13864154151050156e2,
    3.77485237685302021e2,
    3.20937758913846947e3,
)
_B = (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3)
_C = (
    2.15311535474403846e-8,
    5.64188496988670089e-1,
    8.88314979438837594e0,
    6.61191906371416295e1,
    2.98635138197400131e2,
    8.81952221241769090e2,
    1.71204761263407058e3,
    2.05107837782607147e3,
    1.23033935479799725e3,
)
_D = (
    1.0,
    1.57449261107098347e1,
    1.17693950891312499e2,
    5.37181101862009858e2,
    1.62138957456669019e3,
    3.29079923573345963e3,
    4.36261909014324716e3,
    3.43936767414372164e3,
    1.23033935480374942e3,
)
_P = (
    1.63153871373020978e-2,
    3.05326634961232344e-1,
    3.60344899949804439e-1,
    1.25781726111229246e-1,
    1.60837851487422766e-2,
    6.58749161529837803e-4,
)
_Q = (
    1.0,
    2.56852019228982242e0,
    1.87295284992346725e0,
    5.27905102951428412e-1,
    6.05183413124413191e-2,
    2.33520497626869185e-3,
)


def erf(xp: Any, x: Any) -> Any:
    """Error function, to about 1e-15 in float64."""
    kind = x.dtype
    x = x.astype(np.float64)
    a = xp.abs(x)
    small = xp.minimum(a, 0.5)
    z = small * small
    near = small * _poly(z, _A) / _poly(z, _B)
    middle = xp.clip(a, 0.5, 4.0)
    mid = xp.exp(-middle * middle) * _poly(middle, _C) / _poly(middle, _D)
    far = xp.clip(a, 4.0, 26.0)
    w = 1 / (far * far)
    tail = xp.exp(-far * far) / far * (1 / math.sqrt(math.pi) - w * _poly(w, _P) / _poly(w, _Q))
    y = xp.where(a <= 0.5, near, xp.where(a <= 4.0, 1 - mid, 1 - tail))
    y = xp.where(x < 0, -y, y)
    return xp.where(xp.isnan(x), x, y).astype(kind)


def erfinv(xp: Any, x: Any) -> Any:
    """Inverse error function: Giles' polynomial (GPU Computing Gems, 2011), then two Newton steps in float64."""
    kind = x.dtype
    x = x.astype(np.float64)
    inside = xp.clip(x, -1 + 1e-16, 1 - 1e-16)
    w = -xp.log((1 - inside) * (1 + inside))
    lo = _poly(
        xp.minimum(w, 5.0) - 2.5,
        (
            2.81022636e-08,
            3.43273939e-07,
            -3.5233877e-06,
            -4.39150654e-06,
            0.00021858087,
            -0.00125372503,
            -0.00417768164,
            0.246640727,
            1.50140941,
        ),
    )
    hi = _poly(
        xp.sqrt(xp.maximum(w, 5.0)) - 3,
        (
            -0.000200214257,
            0.000100950558,
            0.00134934322,
            -0.00367342844,
            0.00573950773,
            -0.0076224613,
            0.00943887047,
            1.00167406,
            2.83297682,
        ),
    )
    y = xp.where(w < 5, lo, hi) * inside
    for _ in range(2):
        y = y - (erf(xp, y) - inside) * (math.sqrt(math.pi) / 2) * xp.exp(y * y)
    y = xp.where(xp.abs(x) == 1, x * np.inf, y)
    return xp.where(xp.abs(x) > 1, np.nan, y).astype(kind)


# Lanczos' approximation with g = 7 and 9 terms (Numerical Recipes' constants, P. Godfrey).
_G = 7.0
_LANCZOS = (
    0.99999999999980993,
    676.5203681218851,
    -1259.1392167224028,
    771.32342877765313,
    -176.61502916214059,
    12.507343278686905,
    -0.13857109526572012,
    9.9843695780195716e-6,
    1.5056327351493116e-7,
)


def _log_gamma_positive(xp: Any, x: Any) -> Any:
    x = x - 1
    s = x * 0 + _LANCZOS[0]
    for i, c in enumerate(_LANCZOS[1:], 1):
        s = s + c / (x + i)
    t = x + _G + 0.5
    return 0.5 * math.log(2 * math.pi) + (x + 0.5) * xp.log(t) - t + xp.log(s)


def gammaln(xp: Any, x: Any) -> Any:
    """Logarithm of the absolute value of the gamma function."""
    kind = x.dtype
    x = x.astype(np.float64)
    low = x < 0.5
    base = _log_gamma_positive(xp, xp.where(low, 1 - x, x))
    sine = xp.abs(xp.sin(np.pi * x))
    y = xp.where(low, xp.log(np.pi / xp.where(sine == 0, 1.0, sine)) - base, base)
    y = xp.where((x <= 0) & (x == xp.floor(x)) | (x == np.inf), np.inf, y)
    return xp.where((x == 1) | (x == 2), 0.0, y).astype(kind)


def gamma(xp: Any, x: Any) -> Any:
    """Gamma function."""
    kind = x.dtype
    x = x.astype(np.float64)
    size = xp.exp(gammaln(xp, x))
    # Between the poles of the negative axis the sign alternates.
    odd = xp.floor(x) - 2 * xp.floor(xp.floor(x) / 2)
    y = xp.where((x < 0) & (odd == 1), -size, size)
    whole = (x == xp.floor(x)) & (x > 0) & (x < 20)
    y = xp.where(whole, xp.rint(y), y)
    y = xp.where(x == 0, 1 / x, y)  # the two zeros lie on the two sides of the pole
    return xp.where((x < 0) & (x == xp.floor(x)), np.nan, y).astype(kind)


def digamma(xp: Any, x: Any) -> Any:
    """Logarithmic derivative of the gamma function: recurrence up to 6, then the asymptotic series."""
    kind = x.dtype
    x = x.astype(np.float64)
    low = x < 0.5
    z = xp.where(low, 1 - x, x)
    y = xp.zeros_like(x)
    for _ in range(6):
        step = z < 6
        y = y - xp.where(step, 1 / z, 0.0)
        z = z + xp.where(step, 1.0, 0.0)
    w = 1 / (z * z)
    series = w * _poly(w, (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12))
    y = y + xp.log(z) - 0.5 / z - series
    pole = (x <= 0) & (x == xp.floor(x))
    y = xp.where(low, y - np.pi / xp.where(pole, np.nan, xp.tan(np.pi * x)), y)
    return y.astype(kind)
