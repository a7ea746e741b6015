// What of NCCL is used, with its names and what it checks, for the host. What would wait for ever there is an error.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

enum { INVALID_ARGUMENT = 4, INVALID_USAGE = 5 };
enum Kind { ALL_REDUCE, REDUCE, BROADCAST };
static const char* NAMES[] = {"ncclAllReduce", "ncclReduce", "ncclBroadcast"};

// Communicators that were made together, and how many of them there still are.
struct Clique { int size, left; };
struct Comm { Clique* clique; int rank, device; };
struct Call { Kind kind; const void* send; void* receive; size_t count; int type, op, root; Comm* comm; };

static std::set<Comm*> known;
static std::vector<Call> group;
static int depth = 0;
static std::string said, failing;
static int failure = 0, devices = 0;
static int (*device_of)(const void*) = nullptr;
#define MAY_FAIL if (failing == __func__) return wrong(failure, "a failure that was asked for")

static int wrong(int status, const std::string& text) { said = text; return status; }

struct bf16 {
    uint16_t bits;
    operator float() const { uint32_t b = uint32_t(bits) << 16; float v; memcpy(&v, &b, 4); return v; }
    bf16() = default;
    bf16(float v) { uint32_t b; memcpy(&b, &v, 4); bits = v != v ? 0x7fc0 : (b + 0x7fff + (b >> 16 & 1)) >> 16; }
};
static const int SIZES[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

template <class T, class S> static void add(void* total, const void* x, size_t n) {
    for (size_t i = 0; i < n; i++) ((T*)total)[i] = T(S(((T*)total)[i]) + S(((const T*)x)[i]));
}
static void add(int type, void* total, const void* x, size_t n) {
    switch (type) {
        case 0: case 1: return add<uint8_t, uint8_t>(total, x, n);
        case 2: case 3: return add<uint32_t, uint32_t>(total, x, n);
        case 4: case 5: return add<uint64_t, uint64_t>(total, x, n);
        case 6: return add<_Float16, float>(total, x, n);
        case 7: return add<float, float>(total, x, n);
        case 8: return add<double, double>(total, x, n);
        case 9: return add<bf16, float>(total, x, n);
    }
}

// A call of all members, in the order of their ranks.
static void compute(const std::vector<Call>& calls) {
    const Call& any = calls[0];
    size_t bytes = any.count * SIZES[any.type];
    std::vector<char> value(bytes);
    if (any.kind == BROADCAST)
        memcpy(value.data(), calls[any.root].send, bytes);
    else {  // the first is added last: another order than that of the ranks, as there
        memcpy(value.data(), calls[1 % calls.size()].send, bytes);
        for (size_t k = 2; k <= calls.size() && calls.size() > 1; k++)
            add(any.type, value.data(), calls[k % calls.size()].send, any.count);
    }
    for (const Call& c : calls)
        if (c.kind != REDUCE || c.comm->rank == c.root) memcpy(c.receive, value.data(), bytes);
}

static std::string told(const Call& c) {
    return std::string(NAMES[c.kind]) + " of " + std::to_string(c.count) + " of type " + std::to_string(c.type) +
           ", root " + std::to_string(c.root);
}

static int finish() {
    std::map<Clique*, std::vector<std::vector<Call>>> found;
    for (const Call& c : group) {
        auto& ranks = found[c.comm->clique];
        ranks.resize(c.comm->clique->size);
        ranks[c.comm->rank].push_back(c);
    }
    group.clear();
    for (auto& [clique, ranks] : found) {
        for (size_t r = 1; r < ranks.size(); r++) {
            if (ranks[r].size() != ranks[0].size())
                return wrong(INVALID_USAGE, "rank 0 makes " + std::to_string(ranks[0].size()) + " calls, rank " +
                             std::to_string(r) + " makes " + std::to_string(ranks[r].size()) + ": they would wait for ever");
            for (size_t i = 0; i < ranks[0].size(); i++)
                if (told(ranks[0][i]) != told(ranks[r][i]))
                    return wrong(INVALID_USAGE, "rank 0 calls " + told(ranks[0][i]) + ", rank " + std::to_string(r) +
                                 " calls " + told(ranks[r][i]));
        }
        for (size_t i = 0; i < ranks[0].size(); i++) {
            std::vector<Call> calls;
            for (auto& some : ranks) calls.push_back(some[i]);
            compute(calls);
        }
    }
    return 0;
}

static int take(const Call& c, const void* stream) {
    if (!known.count(c.comm)) return wrong(INVALID_ARGUMENT, "comm is none, or was destroyed");
    if (!stream) return wrong(INVALID_ARGUMENT, "the default stream is not ours");
    if (c.type < 0 || c.type > 9 || c.op != 0) return wrong(INVALID_ARGUMENT, "invalid type or operation");
    if (c.root < 0 || c.root >= c.comm->clique->size) return wrong(INVALID_ARGUMENT, "invalid root");
    bool sends = c.kind != BROADCAST || c.comm->rank == c.root, gets = c.kind != REDUCE || c.comm->rank == c.root;
    for (auto [needed, pointer, name] : {std::tuple<bool, const void*, const char*>(sends, c.send, "sendbuff"),
                                         std::tuple<bool, const void*, const char*>(gets, c.receive, "recvbuff")}) {
        if (!needed || !c.count) continue;
        const char* last = (const char*)pointer + c.count * SIZES[c.type] - 1;
        if (device_of(pointer) != c.comm->device || device_of(last) != c.comm->device)
            return wrong(INVALID_ARGUMENT, std::string(name) + " is not in memory of device " + std::to_string(c.comm->device));
    }
    if (!depth && c.comm->clique->size > 1)
        return wrong(INVALID_USAGE, std::string(NAMES[c.kind]) + " outside of a group: it would wait for the others for ever");
    group.push_back(c);
    return depth ? 0 : finish();
}

extern "C" {
void mx_fail(const char* name, int status) { failing = name; failure = status; }
void mx_knows(int (*find)(const void*), int count) { device_of = find, devices = count; }
int mx_left() { return (int)known.size(); }

int ncclGetVersion(int* version) { *version = 22907; return 0; }
const char* ncclGetErrorString(int status) {
    static const char* texts[] = {"no error", "unhandled cuda error", "unhandled system error", "internal error",
                                  "invalid argument", "invalid usage", "remote process exited", "in progress"};
    return status < 0 || status > 7 ? "unknown result code" : texts[status];
}
const char* ncclGetLastError(void*) { return said.c_str(); }

int ncclCommInitAll(Comm** comms, int n, const int* numbers) {
    MAY_FAIL;
    if (n < 1) return wrong(INVALID_ARGUMENT, "invalid device count");
    std::set<int> seen;
    for (int i = 0; i < n; i++)
        if (numbers[i] < 0 || numbers[i] >= devices || !seen.insert(numbers[i]).second)
            return wrong(INVALID_USAGE, "invalid or duplicate device " + std::to_string(numbers[i]));
    Clique* clique = new Clique{n, n};
    for (int i = 0; i < n; i++) known.insert(comms[i] = new Comm{clique, i, numbers[i]});
    return 0;
}
int ncclCommDestroy(Comm* comm) {
    if (!known.erase(comm)) return wrong(INVALID_ARGUMENT, "comm is none, or was destroyed");
    if (!--comm->clique->left) delete comm->clique;
    delete comm;
    return 0;
}

int ncclGroupStart() { MAY_FAIL; depth++; return 0; }
int ncclGroupEnd() {
    if (!depth) return wrong(INVALID_USAGE, "ncclGroupEnd without ncclGroupStart");
    if (--depth) return 0;
    if (failing == __func__) { group.clear(); return wrong(failure, "a failure that was asked for"); }
    return finish();
}

int ncclAllReduce(const void* send, void* receive, size_t count, int type, int op, Comm* comm, void* stream) {
    MAY_FAIL;
    return take({ALL_REDUCE, send, receive, count, type, op, 0, comm}, stream);
}
int ncclReduce(const void* send, void* receive, size_t count, int type, int op, int root, Comm* comm, void* stream) {
    MAY_FAIL;
    return take({REDUCE, send, receive, count, type, op, root, comm}, stream);
}
int ncclBroadcast(const void* send, void* receive, size_t count, int type, int root, Comm* comm, void* stream) {
    MAY_FAIL;
    return take({BROADCAST, send, receive, count, type, 0, root, comm}, stream);
}
}
