// From a caller's data to what tiles read: checks, panels, norms, padded rows, buffers, the tile schedule.
#pragma once
#include <algorithm>
#include <cstring>
#include <new>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "verbs.hpp"

namespace mercer {

// Fresh memory costs a page fault per page; of a large buffer the kernel may take 2 MiB at a time.
inline void ask_for_large_pages(void* at, size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    constexpr size_t page = 4096;
    if (bytes < (size_t(4) << 20)) return;
    const size_t first = (reinterpret_cast<size_t>(at) + page - 1) / page * page;
    madvise(reinterpret_cast<void*>(first), (reinterpret_cast<size_t>(at) + bytes - first) / page * page,
            MADV_HUGEPAGE);
#else
    (void)at, (void)bytes;
#endif
}

// Memory aligned for every instruction set.  Uninitialised unless asked.
template <class T> class Buffer {
  public:
    Buffer() = default;
    explicit Buffer(int64_t count) { reset(count); }
    void reset(int64_t count) {
        const size_t bytes = size_t(count + 1) * sizeof(T);
        data_.reset(static_cast<T*>(::operator new(bytes, std::align_val_t(64))));
        ask_for_large_pages(data_.get(), bytes);
    }
    T* get() const { return data_.get(); }

  private:
    struct Free {
        void operator()(T* p) const { ::operator delete(p, std::align_val_t(64)); }
    };
    std::unique_ptr<T, Free> data_;
};

// For vectors at the start of a line of the cache: a register that lies across two lines is read twice.
template <class T> struct ByLine {
    using value_type = T;
    ByLine() = default;
    template <class U> ByLine(const ByLine<U>&) {}
    T* allocate(size_t count) {
        return static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t(64)));
    }
    void deallocate(T* p, size_t) { ::operator delete(p, std::align_val_t(64)); }
    template <class U> bool operator==(const ByLine<U>&) const { return true; }
};
template <class T> using LineVector = std::vector<T, ByLine<T>>;

// So many zeros to add to.
inline Buffer<double> zeros(int64_t count) {
    Buffer<double> out(count);
    std::fill(out.get(), out.get() + count, 0.0);
    return out;
}

inline int64_t round_up(int64_t a, int64_t b) { return (a + b - 1) / b * b; }

// Sparse rows by coordinate, for each `width` of them (see SparseBlock).
//   memory  one to three times that of the rows
template <class T> struct SparseIndex {
    SparseIndex(const SparseRows<T>& rows, int64_t width, int64_t panel);
    std::vector<SparseBlock<T>> blocks;

  private:
    std::vector<SparsePlace> places_;
    std::vector<std::pair<size_t, size_t>> ends_;  // of each block: places, entries
    std::vector<int32_t> column_;
    std::vector<T> value_;
};

// About how many products of two rows an entry takes for a view, counted in those of dense rows.
template <class S> int64_t terms(const ViewInput<S>& v, int64_t n) {
    constexpr int64_t kSparseTerm = 8;
    return v.sparse ? kSparseTerm * int64_t(v.sx.indices.size()) / std::max<int64_t>(n, 1) : v.d;
}

// A call made ready: `call` points into this object and into the caller's arrays.
template <class T> class Prepared {
  public:
    // `diagonal`: tiles are single rows of pairs; `written`: they are copied to a result.
    Prepared(const Program& program, const Inputs<T>& in, bool diagonal, bool written = false);
    Prepared(const Prepared&) = delete;

    Call<T> call{};
    const Kernels<T>& isa;
    int64_t tile;         // side of a tile
    const bool diagonal;  // tiles are single rows of pairs

    Tile at(int64_t I, int64_t J) const {
        const int64_t i0 = I * tile, j0 = J * tile;
        const int64_t rows = std::min(tile, call.n - i0), cols = std::min(tile, call.m - j0);
        return {i0, rows, j0, cols, round_up(cols, isa.panel), false};
    }
    Tile pairs(int64_t J) const {
        Tile t{J * tile, 1, J * tile, std::min(tile, call.n - J * tile), 0, true};
        t.ld = round_up(t.cols, isa.panel);
        return t;
    }
    // About how long its entries take to evaluate, in steps of crew_size().
    int64_t steps() const { return entries() * entry_steps_; }
    int64_t entry_steps() const { return entry_steps_; }
    int64_t row_blocks() const { return (call.n + tile - 1) / tile; }
    int64_t column_blocks() const { return (call.m + tile - 1) / tile; }
    // First column block of a stripe: the diagonal in same mode.
    int64_t first(int64_t I) const { return call.same ? I : 0; }
    // Whether a tile is left out: all its pairs are of one part, and not of the one that is kept.
    bool left_out(int64_t I, int64_t J) const {
        return !part_.empty() && part_[size_t(I)] == part_[size_t(J)] && part_[size_t(I)] != kept_;
    }

  private:
    int64_t entries() const {
        if (diagonal) return call.n;
        return call.same ? call.n * (call.n + 1) / 2 : call.n * call.m;
    }

    int64_t entry_steps_;
    std::vector<View<T>> views_;
    std::vector<Row<T>> rows_;
    std::vector<const double*> columns_;
    std::vector<Buffer<T>> storage_;
    std::vector<std::unique_ptr<SparseIndex<T>>> indices_;
    std::vector<int64_t> part_;  // of each stripe; empty if nothing is left out
    int64_t kept_ = 0;
};

// The buffers of one worker.
template <class T> class Workspace {
  public:
    // `wanted`: per view, whether `contract` owes its coordinates a gradient; null to evaluate alone.
    explicit Workspace(const Prepared<T>& prep, const std::vector<char>* wanted = nullptr);
    Work<T> work{};

  private:
    Buffer<T> memory_;
};

// Stripes of tiles dealt to groups so that, in same mode, long and short stripes pair up.  A group is done by
// one worker from start to end and owns its accumulators; the deal depends on the problem alone.
inline std::vector<std::vector<int64_t>> deal(int64_t stripes, int64_t groups) {
    std::vector<std::vector<int64_t>> hands(static_cast<size_t>(groups));
    for (int64_t I = 0; I < stripes; ++I) {
        const int64_t turn = I % (2 * groups);
        hands[size_t(turn < groups ? turn : 2 * groups - 1 - turn)].push_back(I);
    }
    return hands;
}

// How many groups: enough for many cores, few enough that `bytes` of accumulators each stay below 256 MiB.
inline int64_t group_count(int64_t stripes, int64_t bytes) {
    const int64_t affordable = (int64_t(256) << 20) / std::max<int64_t>(bytes, 1);
    return std::max<int64_t>(1, std::min({(stripes + 1) / 2, int64_t(32), std::max<int64_t>(affordable, 4)}));
}

}  // namespace mercer
