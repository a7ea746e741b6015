"""Run by test_array_api_consumers in a process of its own: what SciPy and scikit-learn make of arrays of ``mx.np``.

Each of the functions below gets arrays of ``mx.np``, then the same of NumPy. Prints a JSON object: name -> 'ok', the
class of a result that is none of ours, or the error.
"""

import json
import os
import sys

os.environ["SCIPY_ARRAY_API"] = "1"

import numpy as onp

from mxcore import np, npx
from mxcore.ndarray.numpy import array_api as xp

rs = onp.random.RandomState(0)
X = rs.randn(40, 5)
LABELS = (X[:, 0] + 0.3 * rs.randn(40) > 0).astype("int64")
TARGET = X @ rs.randn(5) + 0.1 * rs.randn(40)
GUESS = (LABELS + (rs.rand(40) < 0.2)) % 2


def of_scipy():
    """SciPy's functions of an array."""
    import scipy.cluster.vq
    import scipy.fft
    import scipy.integrate
    import scipy.ndimage
    import scipy.signal
    import scipy.special
    import scipy.stats

    special, stats = scipy.special, scipy.stats
    return {
        "special.logsumexp": lambda x: special.logsumexp(x, axis=1),
        "special.softmax": lambda x: special.softmax(x, axis=1),
        "special.expit": special.expit,
        "special.gammaln": lambda x: special.gammaln(abs(x) + 1),
        "special.xlogy": lambda x: special.xlogy(abs(x), abs(x)),
        "stats.zscore": stats.zscore,
        "stats.skew": stats.skew,
        "stats.kurtosis": stats.kurtosis,
        "stats.gmean": lambda x: stats.gmean(abs(x)),
        "stats.variation": stats.variation,
        "stats.entropy": lambda x: stats.entropy(abs(x)),
        "stats.pearsonr": lambda x: stats.pearsonr(x[:, 0], x[:, 1]).statistic,
        "stats.ttest_ind": lambda x: stats.ttest_ind(x, x * 1.1).pvalue,
        "stats.rankdata": lambda x: stats.rankdata(x, axis=0),
        "stats.quantile": lambda x: stats.quantile(x, 0.3, axis=0),
        "cluster.vq.vq": lambda x: scipy.cluster.vq.vq(x, x[:3, :])[1],
        "integrate.cumulative_trapezoid": lambda x: scipy.integrate.cumulative_trapezoid(x, axis=0),
        "integrate.simpson": lambda x: scipy.integrate.simpson(x, axis=0),
        "ndimage.gaussian_filter": lambda x: scipy.ndimage.gaussian_filter(x, 1),
        "signal.detrend": lambda x: scipy.signal.detrend(x, axis=0),
        "fft.fft": lambda x: abs(scipy.fft.fft(x)),
    }


def of_sklearn():
    """scikit-learn's estimators and scores, of an array, labels, targets and guessed labels."""
    from sklearn import decomposition, discriminant_analysis, linear_model, metrics, mixture, naive_bayes, preprocessing
    from sklearn.model_selection import cross_val_predict

    ridge, pca = linear_model.Ridge(solver="svd"), decomposition.PCA
    lda = discriminant_analysis.LinearDiscriminantAnalysis(solver="svd")
    mixed = mixture.GaussianMixture(2, init_params="random", random_state=0)
    return {
        "StandardScaler": lambda x, *_: preprocessing.StandardScaler().fit_transform(x),
        "MinMaxScaler": lambda x, *_: preprocessing.MinMaxScaler().fit_transform(x),
        "Normalizer": lambda x, *_: preprocessing.Normalizer().fit_transform(x),
        "PolynomialFeatures": lambda x, *_: preprocessing.PolynomialFeatures(2).fit_transform(x),
        "LabelEncoder": lambda x, labels, *_: preprocessing.LabelEncoder().fit_transform(labels),
        "PCA(full)": lambda x, *_: abs(pca(2, svd_solver="full").fit_transform(x)),
        "PCA(covariance_eigh)": lambda x, *_: abs(pca(2, svd_solver="covariance_eigh").fit_transform(x)),
        "Ridge": lambda x, labels, target, _: ridge.fit(x, target).predict(x),
        "RidgeCV": lambda x, labels, target, _: linear_model.RidgeCV().fit(x, target).predict(x),
        "LinearDiscriminantAnalysis": lambda x, labels, *_: lda.fit(x, labels).predict(x),
        "GaussianNB": lambda x, labels, *_: naive_bayes.GaussianNB().fit(x, labels).predict_proba(x),
        "GaussianMixture": lambda x, *_: mixed.fit(x).score_samples(x),
        "LogisticRegression": lambda x, labels, *_: linear_model.LogisticRegression().fit(x, labels).predict_proba(x),
        "cross_val_predict": lambda x, labels, target, _: cross_val_predict(ridge, x, target, cv=3),
        "accuracy_score": lambda x, labels, target, guess: metrics.accuracy_score(labels, guess),
        "f1_score": lambda x, labels, target, guess: metrics.f1_score(labels, guess),
        "roc_auc_score": lambda x, labels, target, guess: metrics.roc_auc_score(labels, target),
        "r2_score": lambda x, labels, target, guess: metrics.r2_score(target, target * 1.1),
        "euclidean_distances": lambda x, *_: metrics.pairwise.euclidean_distances(x),
        "rbf_kernel": lambda x, *_: metrics.pairwise.rbf_kernel(x),
    }


def told(fn, given):
    """'ok', or what is not."""
    try:
        got, want = fn(*map(xp.asarray, given)), fn(*given)
        if not isinstance(got, (np.ndarray, float)):
            return type(got).__module__.partition(".")[0]
        onp.testing.assert_allclose(got.asnumpy() if isinstance(got, np.ndarray) else got, want, rtol=1e-6, atol=1e-8)
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    return "ok"


if __name__ == "__main__":
    npx.set_np()
    if sys.argv[1] == "scipy":
        print(json.dumps({name: told(fn, [X]) for name, fn in of_scipy().items()}))
    else:
        from sklearn import config_context

        with config_context(array_api_dispatch=True):
            given = [X, LABELS, TARGET, GUESS]
            print(json.dumps({name: told(fn, given) for name, fn in of_sklearn().items()}))
