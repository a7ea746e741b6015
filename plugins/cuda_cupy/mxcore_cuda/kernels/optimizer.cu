// Updates of weights, any number in a launch. Gradients are rescaled and bounded, with the weight's decay before or after.
#include "many.cuh"
#include "reduce.cuh"

// `mixed`: weights and gradients are of low precision, and what moves are master copies.
#define WEIGHTS const __grid_constant__ Table table, int mixed

// Within [-c, c], or as it is where c is negative; NaN stays.
DEVICE A bounded(A x, A c) { return c < 0 ? x : x > c ? c : x < -c ? -c : x; }
DEVICE A sign(A x) { return x > 0 ? A(1) : x < 0 ? A(-1) : A(0); }

// lr, wd
KERNEL(256) sgd(WEIGHTS, A rescale, A clip) {
    Part<2> part(table);
    A lr = part.number_at(0, 0), wd = part.number_at(1, 1);
    part.all<0>(mixed, [=](auto e) {
        A w = e.weight();
        e.move(w - lr * (bounded(e.gradient() * rescale, clip) + wd * w));
    });
}
EACH(sgd)

// lr, wd; momentum
KERNEL(256) sgd_mom(WEIGHTS, A momentum, A rescale, A clip) {
    Part<2> part(table);
    A lr = part.number_at(1, 0), wd = part.number_at(2, 1);
    part.all<1>(mixed, [=](auto e) {
        A w = e.weight(), m = momentum * e.state(0) - lr * (bounded(e.gradient() * rescale, clip) + wd * w);
        e.keep(0, m);
        e.move(w + m);
    });
}
EACH(sgd_mom)

// lr, wd; momentum
KERNEL(256) nag_mom(WEIGHTS, A momentum, A rescale, A clip) {
    Part<2> part(table);
    A lr = part.number(0), wd = part.number(1);
    part.all<1>(mixed, [=](auto e) {
        A w = e.weight(), g = bounded(e.gradient() * rescale, clip), old = momentum * e.state(0), step = lr * (g + wd * w);
        w = w + momentum * (old - step) - step;
        e.keep(0, old - lr * (g + wd * w));  // MXNet decays its momentum by the weight it has just updated
        e.move(w);
    });
}
EACH(nag_mom)

// 1 - lr * wd, lr
KERNEL(256) signsgd(WEIGHTS) {
    Part<2> part(table);
    A share = part.number(0), lr = part.number(1);
    part.all<0>(mixed, [=](auto e) { e.move(share * e.weight() - lr * sign(e.gradient())); });
}
EACH(signsgd)

// 1 - lr * wd_lh, lr, wd; momentum
KERNEL(256) signum(WEIGHTS, A momentum, A rescale, A clip) {
    Part<3> part(table);
    A share = part.number(0), lr = part.number(1), wd = part.number(2);
    part.all<1>(mixed, [=](auto e) {
        A w = e.weight(), g = bounded(e.gradient() * rescale, clip) + wd * w;
        A m = momentum * e.state(0) - (1 - momentum) * g;
        e.keep(0, m);
        e.move(share * w + lr * sign(m));
    });
}
EACH(signum)

// The mean of a gradient and the mean of its squares, which are states 0 and 1.
struct Moments {
    A mean, var;
};
template <class E> DEVICE Moments follow(const E& e, A g, A beta1, A beta2) {
    Moments m = {beta1 * e.state(0) + (1 - beta1) * g, beta2 * e.state(1) + (1 - beta2) * (g * g)};
    e.keep(0, m.mean);
    e.keep(1, m.var);
    return m;
}

// lr, wd; mean, var
KERNEL(256) adam(WEIGHTS, A beta1, A beta2, A epsilon, A rescale, A clip) {
    Part<2> part(table);
    A lr = part.number(0), wd = part.number(1);
    part.all<2>(mixed, [=](auto e) {
        A w = e.weight();
        Moments m = follow(e, bounded(e.gradient() * rescale + wd * w, clip), beta1, beta2);
        e.move(w - lr * m.mean / (sqrt(m.var) + epsilon));
    });
}
EACH(adam)

// lr, wd, eta; mean, var. Where the scale is zero or not finite, the step is left out.
KERNEL(256) adamw(WEIGHTS, A beta1, A beta2, A epsilon, A clip, const float* scale) {
    Part<3> part(table);
    A lr = part.number(0), wd = part.number(1), eta = part.number(2), rescale = A(*scale);
    bool fine = rescale != 0 && rescale - rescale == 0;
    part.each<2>(mixed, [=](auto e) {
        A w = e.weight();
        if (!fine) return e.move(w);
        Moments m = follow(e, bounded(e.gradient() * rescale, clip), beta1, beta2);
        e.move(w - eta * (lr * m.mean / (sqrt(m.var) + epsilon) + wd * w));
    });
}
EACH(adamw)

// lr, wd; n
KERNEL(256) rmsprop(WEIGHTS, A gamma1, A epsilon, A rescale, A clip, A clip_weights) {
    Part<2> part(table);
    A lr = part.number(0), wd = part.number(1);
    part.all<1>(mixed, [=](auto e) {
        A w = e.weight(), g = bounded(e.gradient() * rescale + wd * w, clip);
        A n = (1 - gamma1) * (g * g) + gamma1 * e.state(0);
        e.keep(0, n);
        e.move(bounded(w - lr * g / sqrt(n + epsilon), clip_weights));
    });
}
EACH(rmsprop)

// lr, wd; n, the mean of the gradient, the last step
KERNEL(256) rmspropalex(WEIGHTS, A gamma1, A gamma2, A epsilon, A rescale, A clip, A clip_weights) {
    Part<2> part(table);
    A lr = part.number(0), wd = part.number(1);
    part.all<3>(mixed, [=](auto e) {
        A w = e.weight(), g = bounded(e.gradient() * rescale + wd * w, clip);
        A n = (1 - gamma1) * (g * g) + gamma1 * e.state(0), mean = (1 - gamma1) * g + gamma1 * e.state(1);
        A delta = gamma2 * e.state(2) - lr * g / sqrt(n - mean * mean + epsilon);
        e.keep(0, n);
        e.keep(1, mean);
        e.keep(2, delta);
        e.move(bounded(w + delta, clip_weights));
    });
}
EACH(rmspropalex)

// lr, wd; z, n
KERNEL(256) ftrl(WEIGHTS, A lamda1, A beta, A rescale, A clip) {
    Part<2> part(table);
    A lr = part.number(0), wd = part.number(1);
    part.all<2>(mixed, [=](auto e) {
        A w = e.weight(), g = bounded(e.gradient() * rescale, clip), n = e.state(1), grown = n + g * g;
        A z = e.state(0) + g - (sqrt(grown) - sqrt(n)) * w / lr;
        e.keep(0, z);
        e.keep(1, grown);
        e.move(fabs(z) <= lamda1 ? A(0) : (sign(z) * lamda1 - z) / ((beta + sqrt(grown)) / lr + wd));
    });
}
EACH(ftrl)

// (1 - beta1^t) / lr, 1 - beta2^t, wd; d, v, z
KERNEL(256) ftml(WEIGHTS, A beta1, A beta2, A epsilon, A rescale, A clip) {
    Part<3> part(table);
    A pace = part.number(0), spread = part.number(1), wd = part.number(2);
    part.all<3>(mixed, [=](auto e) {
        A w = e.weight(), g = bounded(e.gradient() * rescale + wd * w, clip);
        A v = beta2 * e.state(1) + (1 - beta2) * (g * g), d = pace * (sqrt(v / spread) + epsilon);
        A z = beta1 * e.state(2) + (1 - beta1) * g - (d - beta1 * e.state(0)) * w;
        e.keep(0, d);
        e.keep(1, v);
        e.keep(2, z);
        e.move(-z / d);
    });
}
EACH(ftml)

// lr, wd; history
KERNEL(256) adagrad(WEIGHTS, A epsilon, A rescale, A clip) {
    Part<2> part(table);
    A lr = part.number(0), wd = part.number(1);
    part.all<1>(mixed, [=](auto e) {
        A w = e.weight(), g = bounded(e.gradient() * rescale, clip), history = e.state(0) + g * g;
        e.keep(0, history);
        e.move(w - lr * (g / sqrt(history + epsilon) + wd * w));
    });
}
EACH(adagrad)

// AdaGrad with one rate for each row of a matrix: a row each.
KERNEL(256) group_adagrad(T* weight, const T* grad, T* history, i64 rows, i64 n, A lr, A epsilon, A rescale, A clip) {
    i64 row = this_row();
    if (row >= rows) return;
    A total = 0, kept = A(history[row]);
    for (i64 i = row * n + threadIdx.x; i < row * n + n; i += blockDim.x) {
        A g = bounded(A(grad[i]) * rescale, clip);
        total += g * g;
    }
    kept += reduce_row(total, Sum()) / A(n);
    for (i64 i = row * n + threadIdx.x; i < row * n + n; i += blockDim.x)
        weight[i] = T(A(weight[i]) - lr * bounded(A(grad[i]) * rescale, clip) / sqrt(kept + epsilon));
    if (threadIdx.x == 0) history[row] = T(kept);  // all have read it
}
BLOCKS(group_adagrad)

// -- LAMB: moments, and the norms of weight and direction; then the step -----------------------------------------------
// lr, wd, what the moments lack at the start (1 if that is not corrected)
typedef Part<4> Layer;
template <class E> DEVICE A direction(const E& e, const Layer& part, Moments m, A epsilon) {
    return m.mean / part.number(2) / (sqrt(m.var / part.number(3)) + epsilon) + part.number(1) * e.weight();
}

// The direction is state 2.
KERNEL(256) lamb_direction(WEIGHTS, A beta1, A beta2, A epsilon, A rescale, A clip) {
    Layer part(table);
    part.each<2>(mixed, [=](auto e) {
        Moments m = follow(e, bounded(e.gradient() * rescale, clip), beta1, beta2);
        e.keep(2, direction(e, part, m, epsilon));
    });
}
EACH(lamb_direction)

// The sums of squares of weight and direction of each block, one after the other.
KERNEL(256) lamb_moments(WEIGHTS, A beta1, A beta2, A epsilon, A rescale, A clip, A* sums) {
    Layer part(table);
    A weights = 0, ways = 0;
    part.each<2>(mixed, [&](auto e) {
        A w = e.weight();
        Moments m = follow(e, bounded(e.gradient() * rescale, clip), beta1, beta2);
        A way = direction(e, part, m, epsilon);
        weights += w * w;
        ways += way * way;
    });
    weights = reduce_row(weights, Sum());
    ways = reduce_row(ways, Sum());
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = weights;
        sums[gridDim.x + blockIdx.x] = ways;
    }
}
BLOCKS(lamb_moments)

// The length of a step: the weight's bounded norm over that of the direction; 1 where one of them is 0.
DEVICE A stride(A weight, A way, A lower, A upper) {
    if (lower >= 0 && weight < lower) weight = lower;
    if (upper >= 0 && weight > upper) weight = upper;
    return weight == 0 || way == 0 ? A(1) : weight / way;
}

KERNEL(256) lamb_step(WEIGHTS, A epsilon, A lower, A upper, const A* totals) {
    Layer part(table);
    A ratio = stride(sqrt(totals[part.weight]), sqrt(totals[table.rows + part.weight]), lower, upper);
    A step = part.number(0) * ratio;
    part.each<2>(mixed, [=](auto e) {
        e.move(e.weight() - step * direction(e, part, {e.state(0), e.state(1)}, epsilon));
    });
}
EACH(lamb_step)

// lr; the direction, and two norms.
KERNEL(256) lamb_scaled(WEIGHTS, A lower, A upper, const void* weights, const void* ways) {
    Part<1> part(table);
    A lr = part.number(0);
    part.each<1>(mixed, [=](auto e) {
        e.move(e.weight() - lr * stride(e.alone(weights), e.alone(ways), lower, upper) * e.state(0));
    });
}
EACH(lamb_scaled)

// -- LARS --------------------------------------------------------------------------------------------------------------
// The sum of squares of each block, of arrays in the place of gradients.
KERNEL(256) squares(const __grid_constant__ Table table, A* sums) {
    Part<1> part(table);
    A total = 0;
    part.each<0>(0, [&](auto e) { total += e.gradient() * e.gradient(); });
    total = reduce_row(total, Sum());
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
}
BLOCKS(squares)

// What the blocks of each weight found, added up: a block for each, and along y for each kind of sum.
KERNEL(256) add_up(const __grid_constant__ Table table, int blocks, const A* sums, A* totals) {
    i64 row = blockIdx.x, first = (i64)table.word[row * table.width];
    i64 end = row + 1 < table.rows ? (i64)table.word[(row + 1) * table.width] : blocks;
    A total = 0;
    for (i64 i = first + threadIdx.x; i < end; i += blockDim.x) total += sums[blockIdx.y * (i64)blocks + i];
    total = reduce_row(total, Sum());
    if (threadIdx.x == 0) totals[blockIdx.y * (i64)gridDim.x + row] = total;
}
BLOCKS(add_up)

KERNEL(256) lars(const T* lrs, const T* weights, const T* grads, const T* wds, T* out, i64 n, A eta, A eps, A rescale) {
    FOR_EACH(i, n) {
        A lr = A(lrs[i]), w = sqrt(A(weights[i])), g = A(grads[i]);
        out[i] = T(w > 0 && g > 0 ? lr * eta * w / (sqrt(g) * rescale + A(wds[i]) * w + eps) : lr);
    }
}
EACH(lars)

// Zeros, of arrays in the place of weights.
KERNEL(256) clear(const __grid_constant__ Table table) {
    Part<0> part(table);
    part.each<0>(0, [](auto e) { e.move(0); });
}
EACH(clear)
