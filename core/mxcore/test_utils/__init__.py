"""What users of MXNet test their own code with (``mx.test_utils``): comparisons, gradient checks, random arrays, data
files.

The names, signatures and tolerances are those of MXNet 1.9.1. The package is imported at the first use of
``mx.test_utils``.
"""

from contextlib import contextmanager

from ..context import Context, current_context
from ..ndarray import array
from ..runtime import Features
from ..symbol import Symbol
from .arrays import (
    assign_each,
    assign_each2,
    collapse_sum_like,
    create_2d_tensor,
    create_vector,
    get_identity_mat,
    get_identity_mat_batch,
    np_reduce,
    rand_coord_2d,
    rand_ndarray,
    rand_shape_2d,
    rand_shape_3d,
    rand_shape_nd,
    random_arrays,
    random_sample,
    random_uniform_arrays,
)
from .comparing import (
    almost_equal,
    assert_allclose,
    assert_almost_equal,
    assert_almost_equal_ignore_nan,
    assert_almost_equal_with_err,
    assert_exception,
    checkShapes,
    compare_ndarray_tuple,
    locationError,
    same,
    same_array,
)
from .consistency import check_consistency, check_gluon_hybridize_consistency
from .environment import (
    default_context,
    discard_stderr,
    environment,
    get_cuda_compute_capability,
    getenv,
    has_tvm_ops,
    is_aarch64_run,
    is_cd_run,
    is_op_runnable,
    list_gpus,
    retry,
    set_default_context,
    setenv,
    use_np,
)
from .files import (
    download,
    download_model,
    get_bz2_data,
    get_cifar10,
    get_im2rec_path,
    get_mnist,
    get_mnist_iterator,
    get_mnist_pkl,
    get_mnist_ubyte,
    get_zip_data,
)
from .generators import chi_square_check, gen_buckets_probs_with_ppf, mean_check, var_check, verify_generator
from .gradients import check_numeric_gradient, numeric_grad
from .iterators import DummyIter
from .matrices import (
    new_matrix_with_real_eigvals_2d,
    new_matrix_with_real_eigvals_nd,
    new_orthonormal_matrix_2d,
    new_sym_matrix_with_real_eigvals_2d,
    new_sym_matrix_with_real_eigvals_nd,
)
from .optimizers import compare_optimizer
from .sparse import create_sparse_array, create_sparse_array_zd, rand_sparse_ndarray, shuffle_csr_column_indices
from .symbolic import (
    check_speed,
    check_symbolic_backward,
    check_symbolic_forward,
    same_symbol_structure,
    simple_forward,
)
from .tolerances import (
    default_atols,
    default_dtype,
    default_numeric_eps,
    default_rtols,
    effective_dtype,
    get_atol,
    get_etol,
    get_rtol,
    get_tolerance,
    get_tols,
)

__all__ = [
    "Context", "DummyIter", "Features", "Symbol", "almost_equal", "array", "assert_allclose", "assert_almost_equal",
    "assert_almost_equal_ignore_nan", "assert_almost_equal_with_err", "assert_exception", "assign_each", "assign_each2", "checkShapes",
    "check_consistency", "check_gluon_hybridize_consistency", "check_numeric_gradient", "check_speed", "check_symbolic_backward",
    "check_symbolic_forward", "chi_square_check", "collapse_sum_like", "compare_ndarray_tuple", "compare_optimizer",
    "contextmanager", "create_2d_tensor", "create_sparse_array", "create_sparse_array_zd", "create_vector", "current_context",
    "default_atols", "default_context", "default_dtype", "default_numeric_eps", "default_rtols", "discard_stderr", "download",
    "download_model", "effective_dtype", "environment", "gen_buckets_probs_with_ppf", "get_atol", "get_bz2_data", "get_cifar10",
    "get_cuda_compute_capability", "get_etol", "get_identity_mat", "get_identity_mat_batch", "get_im2rec_path", "get_mnist",
    "get_mnist_iterator", "get_mnist_pkl", "get_mnist_ubyte", "get_rtol", "get_tolerance", "get_tols", "get_zip_data", "getenv",
    "has_tvm_ops", "is_aarch64_run", "is_cd_run", "is_op_runnable", "list_gpus", "locationError", "mean_check",
    "new_matrix_with_real_eigvals_2d", "new_matrix_with_real_eigvals_nd", "new_orthonormal_matrix_2d",
    "new_sym_matrix_with_real_eigvals_2d", "new_sym_matrix_with_real_eigvals_nd", "np_reduce", "numeric_grad", "rand_coord_2d",
    "rand_ndarray", "rand_shape_2d", "rand_shape_3d", "rand_shape_nd", "rand_sparse_ndarray", "random_arrays", "random_sample",
    "random_uniform_arrays", "retry", "same", "same_array", "same_symbol_structure", "set_default_context", "setenv",
    "shuffle_csr_column_indices", "simple_forward", "use_np", "var_check", "verify_generator",
]  # fmt: skip
