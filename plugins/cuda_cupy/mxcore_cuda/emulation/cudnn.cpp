// What of cuDNN is used, with its names and what it checks, for the host.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

enum { BAD_PARAM = 2000, BAD_SHAPE = 2008, NOT_SUPPORTED = 3000, BAD_TYPE = 3003 };
enum { FLOAT, DOUBLE, HALF };

struct Tensor { int type, n, dims[8], strides[8]; };
struct Filter { int type, format, n, dims[8]; };
struct Convolution { int n, pad[6], stride[6], dilate[6], mode, compute, groups, math; };
struct Perf { int algorithm, status; float time; size_t memory; int determinism, math, reserved[3]; };
static_assert(sizeof(Perf) == 48, "as the header has it");

// A failure that a test asks for: of which function, with which status.
static std::string failing;
static int failure = 0;
#define MAY_FAIL if (failing == __func__) return failure

extern "C" {
void mx_fail(const char* name, int status) { failing = name; failure = status; }

size_t cudnnGetVersion() { return 91900; }
const char* cudnnGetErrorString(int status) {
    return status < 2000 ? "CUDNN_STATUS_NOT_INITIALIZED" : status < 3000 ? "CUDNN_STATUS_BAD_PARAM"
         : status < 4000 ? "CUDNN_STATUS_NOT_SUPPORTED" : status < 5000 ? "CUDNN_STATUS_INTERNAL_ERROR"
                         : "CUDNN_STATUS_EXECUTION_FAILED";
}
void cudnnGetLastErrorString(char* said, size_t size) { snprintf(said, size, "said by the emulation"); }
int cudnnCreate(void** handle) { MAY_FAIL; *handle = (void*)1; return 0; }
int cudnnSetStream(void* handle, void* stream) { return handle == (void*)1 && stream ? 0 : BAD_PARAM; }

int cudnnCreateTensorDescriptor(Tensor** d) { *d = new Tensor(); return 0; }
int cudnnCreateFilterDescriptor(Filter** d) { *d = new Filter(); return 0; }
int cudnnCreateConvolutionDescriptor(Convolution** d) { *d = new Convolution(); return 0; }
int cudnnDestroyTensorDescriptor(Tensor* d) { delete d; return 0; }
int cudnnDestroyFilterDescriptor(Filter* d) { delete d; return 0; }
int cudnnDestroyConvolutionDescriptor(Convolution* d) { delete d; return 0; }

int cudnnSetTensorNdDescriptor(Tensor* d, int type, int n, const int* dims, const int* strides) {
    MAY_FAIL;
    if (n < 4 || n > 8) return BAD_PARAM;
    *d = {type, n};
    for (int i = 0; i < n; i++) {
        if (dims[i] < 1 || strides[i] < 1) return BAD_PARAM;
        d->dims[i] = dims[i], d->strides[i] = strides[i];
    }
    return 0;
}
int cudnnSetFilterNdDescriptor(Filter* d, int type, int format, int n, const int* dims) {
    if (n < 4 || n > 8 || format < 0 || format > 1) return BAD_PARAM;
    *d = {type, format, n};
    for (int i = 0; i < n; i++) {
        if (dims[i] < 1) return BAD_PARAM;
        d->dims[i] = dims[i];
    }
    return 0;
}
int cudnnSetConvolutionNdDescriptor(Convolution* d, int n, const int* pad, const int* stride, const int* dilate, int mode,
                                    int compute) {
    if (n < 2 || n > 6) return BAD_PARAM;
    *d = {n};
    for (int i = 0; i < n; i++) {
        if (pad[i] < 0 || stride[i] < 1 || dilate[i] < 1) return BAD_PARAM;
        d->pad[i] = pad[i], d->stride[i] = stride[i], d->dilate[i] = dilate[i];
    }
    d->mode = mode, d->compute = compute, d->groups = 1;
    return 0;
}
int cudnnSetConvolutionGroupCount(Convolution* d, int groups) { d->groups = groups; return groups < 1 ? BAD_PARAM : 0; }
int cudnnSetConvolutionMathType(Convolution* d, int math) { d->math = math; return math < 0 || math > 3 ? BAD_PARAM : 0; }
}

// -- what can be computed ------------------------------------------------------------------------------------------------
static int wrong(const void* handle, const Tensor* x, const Filter* w, const Convolution* c, const Tensor* y) {
    if (handle != (void*)1) return BAD_PARAM;
    if (x->n != w->n || x->n != y->n || c->n != x->n - 2 || c->mode != 1) return BAD_PARAM;
    if (x->type != w->type || x->type != y->type || c->compute != (x->type == DOUBLE ? DOUBLE : FLOAT)) return BAD_TYPE;
    if (x->dims[0] != y->dims[0] || w->dims[0] != y->dims[1] || w->dims[1] * c->groups != x->dims[1]) return BAD_SHAPE;
    if (w->dims[0] % c->groups) return BAD_SHAPE;
    for (int i = 0; i < c->n; i++) {
        int room = x->dims[2 + i] + 2 * c->pad[i] - (c->dilate[i] * (w->dims[2 + i] - 1) + 1);
        if (room < 0 || y->dims[2 + i] != room / c->stride[i] + 1) return BAD_SHAPE;
    }
    return 0;
}

// The bytes of an algorithm's workspace; -1 where it does not support a convolution. One with a workspace takes 3 x 3 only.
static int64_t space(int algorithm, const Filter* w, const Convolution* c, int roomy, int count) {
    if (algorithm < 0 || algorithm >= count) return -1;
    if (algorithm != roomy) return algorithm == 1 ? 512 : algorithm ? -1 : 0;
    for (int i = 0; i < c->n; i++)
        if (w->dims[2 + i] != 3 || c->stride[i] != 1 || c->dilate[i] != 1 || c->n != 2) return -1;
    return 3 << 20;
}

static int choose(int wrong, const Filter* w, const Convolution* c, int roomy, int all, bool first_repeats, int asked,
                  int* count, Perf* found) {
    if (wrong) return wrong;
    *count = 0;
    for (int k = 0; k < all && *count < asked; k++) {
        int algorithm = k == 0 ? roomy : k <= roomy ? k - 1 : k;
        int64_t size = space(algorithm, w, c, roomy, all);
        Perf perf = {algorithm, size < 0 ? NOT_SUPPORTED : 0, -1, size_t(size < 0 ? 0 : size),
                     first_repeats || algorithm, c->math};
        found[(*count)++] = perf;
    }
    return 0;
}

// -- computing it ----------------------------------------------------------------------------------------------------------
struct Places {
    int64_t x[5], w[5], y[5];
    int images, groups, channels, filters, in[3], out[3], kernel[3], pad[3], stride[3], dilate[3];
};

static void spread(const int* dims, const int64_t* strides, int n, int* lengths, int64_t* steps) {
    steps[0] = strides[0], steps[1] = strides[1];
    for (int i = 0; i < 3; i++) {
        int axis = i + n - 3;  // of n - 2 axes, the missing ones first
        lengths[i] = axis < 2 ? 1 : dims[axis], steps[2 + i] = axis < 2 ? 0 : strides[axis];
    }
}

static Places places(const Tensor* x, const Filter* w, const Convolution* c, const Tensor* y) {
    Places p;
    int64_t sx[8], sy[8], sw[8], step = 1;
    for (int i = 0; i < x->n; i++) sx[i] = x->strides[i], sy[i] = y->strides[i];
    if (w->format == 1) sw[1] = 1, step = w->dims[1];
    for (int i = w->n - 1; i >= (w->format ? 2 : 0); i--) sw[i] = step, step *= w->dims[i];
    if (w->format == 1) sw[0] = step;
    spread(x->dims, sx, x->n, p.in, p.x);
    spread(y->dims, sy, y->n, p.out, p.y);
    spread(w->dims, sw, w->n, p.kernel, p.w);
    p.images = x->dims[0], p.groups = c->groups, p.channels = w->dims[1], p.filters = w->dims[0] / c->groups;
    for (int i = 0; i < 3; i++) {
        int axis = i + c->n - 3;
        p.pad[i] = axis < 0 ? 0 : c->pad[axis];
        p.stride[i] = axis < 0 ? 1 : c->stride[axis], p.dilate[i] = axis < 0 ? 1 : c->dilate[axis];
    }
    return p;
}

// Calls f(place in x, in w, in y) for all that belong together.
template <class F> static void each(const Places& p, F f) {
    for (int n = 0; n < p.images; n++)
        for (int f0 = 0; f0 < p.groups * p.filters; f0++)
            for (int c = 0; c < p.channels; c++) {
                int64_t x0 = n * p.x[0] + (f0 / p.filters * p.channels + c) * p.x[1];
                int64_t w0 = f0 * p.w[0] + c * p.w[1], y0 = n * p.y[0] + f0 * p.y[1];
                for (int a = 0; a < p.out[0]; a++)
                    for (int b = 0; b < p.out[1]; b++)
                        for (int d = 0; d < p.out[2]; d++)
                            for (int i = 0; i < p.kernel[0]; i++)
                                for (int j = 0; j < p.kernel[1]; j++)
                                    for (int k = 0; k < p.kernel[2]; k++) {
                                        int z = a * p.stride[0] - p.pad[0] + i * p.dilate[0];
                                        int h = b * p.stride[1] - p.pad[1] + j * p.dilate[1];
                                        int v = d * p.stride[2] - p.pad[2] + k * p.dilate[2];
                                        if (z < 0 || z >= p.in[0] || h < 0 || h >= p.in[1] || v < 0 || v >= p.in[2]) continue;
                                        f(x0 + z * p.x[2] + h * p.x[3] + v * p.x[4], w0 + i * p.w[2] + j * p.w[3] + k * p.w[4],
                                          y0 + a * p.y[2] + b * p.y[3] + d * p.y[4]);
                                    }
            }
}

template <class T, class S>
static void compute(const Places& p, int part, const void* alpha, const void* a_, const void* b_, const void* beta,
                    void* out_, int64_t size) {
    const T *a = (const T*)a_, *b = (const T*)b_;
    T* out = (T*)out_;
    S* sum = new S[size]();
    if (part == 0) each(p, [&](int64_t x, int64_t w, int64_t y) { sum[y] += S(a[x]) * S(b[w]); });
    if (part == 1) each(p, [&](int64_t x, int64_t w, int64_t y) { sum[x] += S(a[w]) * S(b[y]); });
    if (part == 2) each(p, [&](int64_t x, int64_t w, int64_t y) { sum[w] += S(a[x]) * S(b[y]); });
    for (int64_t i = 0; i < size; i++) {
        S own = *(const S*)alpha * sum[i];
        out[i] = T(*(const S*)beta == 0 ? own : own + *(const S*)beta * S(out[i]));
    }
    delete[] sum;
}

static int run(int wrong, const Places& p, int type, int part, int64_t size, int64_t needs, const void* alpha,
               const void* a, const void* b, void* space, size_t room, const void* beta, void* out) {
    if (wrong) return wrong;
    if (needs < 0) return NOT_SUPPORTED;
    if (!a || !b || !out || size_t(needs) > room || needs && !space) return BAD_PARAM;
    if (room) memset(space, 0xff, room);
    if (type == FLOAT) compute<float, float>(p, part, alpha, a, b, beta, out, size);
    else if (type == DOUBLE) compute<double, double>(p, part, alpha, a, b, beta, out, size);
    else if (type == HALF) compute<_Float16, float>(p, part, alpha, a, b, beta, out, size);
    else return BAD_TYPE;
    return 0;
}

template <class D> static int64_t elements(const D* d) {
    int64_t n = 1;
    for (int i = 0; i < d->n; i++) n *= d->dims[i];
    return n;
}

// Name, the descriptors in cuDNN's order, which result, the algorithm with much workspace, how many there are, whether
// the first one gives the same at every run, the result's descriptor.
#define OPERATION(NAME, A, B, OUT, PART, ROOMY, COUNT, REPEATS, RESULT)                                                  \
    extern "C" int cudnnGetConvolution##NAME##Algorithm_v7(void* h, A, B, Convolution* c, OUT, int asked, int* count,    \
                                                          Perf* found) {                                                 \
        MAY_FAIL;                                                                                                        \
        return choose(wrong(h, x, w, c, y), w, c, ROOMY, COUNT, REPEATS, asked, count, found);                           \
    }                                                                                                                    \
    extern "C" int cudnnGetConvolution##NAME##WorkspaceSize(void* h, A, B, Convolution* c, OUT, int algorithm,           \
                                                           size_t* size) {                                               \
        MAY_FAIL;                                                                                                        \
        if (int status = wrong(h, x, w, c, y)) return status;                                                            \
        int64_t needs = space(algorithm, w, c, ROOMY, COUNT);                                                            \
        *size = size_t(needs);                                                                                           \
        return needs < 0 ? NOT_SUPPORTED : 0;                                                                            \
    }                                                                                                                    \
    extern "C" int cudnnConvolution##NAME(void* h, const void* alpha, A, const void* a, B, const void* b,                \
                                          Convolution* c, int algorithm, void* room, size_t size, const void* beta, OUT, \
                                          void* out) {                                                                   \
        MAY_FAIL;                                                                                                        \
        return run(wrong(h, x, w, c, y), places(x, w, c, y), x->type, PART, elements(RESULT),                            \
                   space(algorithm, w, c, ROOMY, COUNT), alpha, a, b, room, size, beta, out);                            \
    }

OPERATION(Forward, Tensor* x, Filter* w, Tensor* y, 0, 6, 8, true, y)
OPERATION(BackwardData, Filter* w, Tensor* y, Tensor* x, 1, 4, 6, false, x)
OPERATION(BackwardFilter, Tensor* x, Tensor* y, Filter* w, 2, 5, 7, false, w)

// -- the graph interface: objects by their attributes ----------------------------------------------------------------------
struct Attribute { int kind; int64_t count; std::string bytes; };
struct Object {
    int kind;
    bool done;
    std::map<int, Attribute> attributes;
    const Attribute* get(int name) const { auto at = attributes.find(name); return at == attributes.end() ? 0 : &at->second; }
    template <class V> V value(int name, int i = 0) const { V v; memcpy(&v, get(name)->bytes.data() + i * sizeof v, sizeof v); return v; }
    void set(int name, int kind, const void* from, size_t n) { attributes[name] = {kind, 1, std::string((const char*)from, n)}; }
};
enum { CONVOLUTION = 1, ENGINE, CONFIGURATION, HEURISTICS, PLAN, GRAPH = 15, PACK, TENSOR };
enum { NOT_DONE = 2004, ENGINES = 3 };

static size_t width(int kind) { return kind == 2 ? 1 : kind == 0 || kind == 3 || kind == 5 || kind == 6 || kind == 15 ? 8 : 4; }
static bool has(const Object* o, int name, int kind) {
    const Attribute* a = o->get(name);
    if (!a || a->kind != kind) return false;
    if (kind == 15)
        for (int i = 0; i < a->count; i++)
            if (!o->value<Object*>(name, i)->done) return false;
    return true;
}

// What an engine is noted for: the first is not the same at every run, the second uses tensor cores, the third is plain.
static int note(int64_t engine) { return engine == 0 ? 4 : engine == 1 ? 0 : -1; }

struct Operation { int part; Tensor x, y; Filter w; Convolution c; const Object* parts[3]; };
static int operation(const Object* o, Operation* r) {
    int first = o->kind == 10 ? 700 : o->kind == 12 ? 706 : 712;
    const Object* c = o->value<Object*>(first + 2);
    r->part = o->kind == 10 ? 0 : o->kind == 12 ? 1 : 2;
    for (int i = 0; i < 3; i++) r->parts[i] = o->value<Object*>(first + 3 + i);
    const Object *w = r->parts[0], *x = r->parts[1], *y = r->parts[2];
    for (auto t : {x, y}) {
        Tensor& to = t == x ? r->x : r->y;
        to = {t->value<int>(901), int(t->get(902)->count)};
        for (int i = 0; i < to.n; i++) to.dims[i] = t->value<int64_t>(902, i), to.strides[i] = t->value<int64_t>(903, i);
    }
    r->w = {w->value<int>(901), 0, int(w->get(902)->count)};
    for (int i = 0; i < r->w.n; i++) r->w.dims[i] = w->value<int64_t>(902, i);
    r->c = {int(c->value<int64_t>(106))};
    for (int i = 0; i < r->c.n; i++) {
        if (c->value<int64_t>(104, i) != c->value<int64_t>(105, i)) return BAD_PARAM;
        r->c.pad[i] = c->value<int64_t>(105, i), r->c.stride[i] = c->value<int64_t>(103, i);
        r->c.dilate[i] = c->value<int64_t>(102, i);
    }
    r->c.mode = c->value<int>(101), r->c.compute = c->value<int>(100);
    r->c.groups = r->x.dims[1] / r->w.dims[1];
    return wrong((void*)1, &r->x, &r->w, &r->c, &r->y);
}

extern "C" {
int cudnnBackendCreateDescriptor(int kind, Object** made) { *made = new Object{kind}; return 0; }
int cudnnBackendDestroyDescriptor(Object* o) { delete o; return 0; }
int cudnnBackendSetAttribute(Object* o, int name, int kind, int64_t count, const void* from) {
    MAY_FAIL;
    if (o->done || count < 1 || !from) return BAD_PARAM;
    o->attributes[name] = {kind, count, std::string((const char*)from, count * width(kind))};
    return 0;
}
int cudnnBackendFinalize(Object* o) {
    MAY_FAIL;
    static const std::map<int, std::map<int, int>> wanted = {
        {CONVOLUTION, {{100, 1}, {101, 7}, {102, 3}, {103, 3}, {104, 3}, {105, 3}, {106, 3}}},
        {TENSOR, {{900, 3}, {901, 1}, {902, 3}, {903, 3}, {906, 3}}},
        {10, {{702, 15}, {703, 15}, {704, 15}, {705, 15}}},
        {12, {{708, 15}, {709, 15}, {710, 15}, {711, 15}}},
        {11, {{714, 15}, {715, 15}, {716, 15}, {717, 15}}},
        {GRAPH, {{801, 15}, {800, 0}}},
        {HEURISTICS, {{201, 15}, {200, 8}}},
        {PLAN, {{400, 0}, {401, 15}}},
        {PACK, {{1000, 3}, {1001, 6}, {1003, 6}}},
    };
    auto needs = wanted.find(o->kind);
    if (needs == wanted.end()) return BAD_PARAM;
    for (auto& [name, kind] : needs->second)
        if (!has(o, name, kind)) return NOT_DONE;
    if (o->kind >= 10 && o->kind <= 12) {
        int first = o->kind == 10 ? 700 : o->kind == 12 ? 706 : 712;
        Operation r;
        if (int status = operation(o, &r)) return status;
        if (!has(o, first, r.x.type == DOUBLE ? 5 : 4) || !has(o, first + 1, r.x.type == DOUBLE ? 5 : 4)) return BAD_TYPE;
    }
    o->done = true;
    return 0;
}
int cudnnBackendGetAttribute(Object* o, int name, int kind, int64_t most, int64_t* count, void* to) {
    if (name == 202 && o->kind == HEURISTICS && kind == 15) {
        *count = most < ENGINES ? most : ENGINES;
        for (int64_t i = 0; i < *count; i++) {
            Object* made = ((Object**)to)[i];
            if (made->kind != CONFIGURATION) return BAD_PARAM;
            Object* graph = o->value<Object*>(201);
            made->done = true, made->set(1300, 15, &graph, 8), made->set(1301, 3, &i, 8);
        }
    } else if (name == 300 && o->kind == CONFIGURATION && kind == 15 && most == 1) {
        Object* made = *(Object**)to;
        if (made->kind != ENGINE) return BAD_PARAM;
        made->attributes = o->attributes, *count = 1;
    } else if (name == 1303 && o->kind == ENGINE && kind == 11) {
        *count = note(o->value<int64_t>(1301)) >= 0;
        if (*count) *(int*)to = note(o->value<int64_t>(1301));
    } else if (name == 1301 && o->kind == ENGINE && kind == 3) {
        *(int64_t*)to = o->value<int64_t>(1301) + 40, *count = 1;
    } else if (name == 402 && o->kind == PLAN && kind == 3 && o->done) {
        *(int64_t*)to = 768, *count = 1;
    } else return BAD_PARAM;
    return 0;
}
int cudnnBackendExecute(void* handle, Object* plan, Object* pack) {
    MAY_FAIL;
    if (handle != (void*)1 || plan->kind != PLAN || pack->kind != PACK || !plan->done || !pack->done) return BAD_PARAM;
    Operation r;
    Object* graph = plan->value<Object*>(401)->value<Object*>(1300);
    if (int status = operation(graph->value<Object*>(801), &r)) return status;
    void* at[3] = {};  // of w, x and y
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < pack->get(1000)->count; j++)
            if (pack->value<int64_t>(1000, j) == r.parts[i]->value<int64_t>(906)) at[i] = pack->value<void*>(1001, j);
    for (int i = 0; i < 3; i++)
        if (!at[i] || (uintptr_t)at[i] % r.parts[i]->value<int64_t>(900)) return BAD_PARAM;
    void *a[] = {at[1], at[0], at[1]}, *b[] = {at[0], at[2], at[2]}, *out[] = {at[2], at[1], at[0]};
    int64_t sizes[] = {elements(&r.y), elements(&r.x), elements(&r.w)};
    double scalars[2] = {1, 0};
    float small[2] = {1, 0};
    const void *one = r.x.type == DOUBLE ? (void*)scalars : small, *zero = r.x.type == DOUBLE ? (void*)(scalars + 1) : small + 1;
    return run(0, places(&r.x, &r.w, &r.c, &r.y), r.x.type, r.part, sizes[r.part], 768, one, a[r.part], b[r.part],
               pack->value<void*>(1003), 768, zero, out[r.part]);
}
}
