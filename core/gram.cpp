// gram, apply and diag: K written, K V without K, and the diagonal of K.
#include "prepare.hpp"

namespace mercer {
namespace {

// In a diagonal tile the upper triangle decides: K is symmetric to the last bit.
template <class T> void mirror(T* K, int64_t rows, int64_t ld) {
    for (int64_t i = 1; i < rows; ++i)
        for (int64_t j = 0; j < i; ++j) K[i * ld + j] = K[j * ld + i];
}

}  // namespace

// out = K, n*m.  Returns whether all of K is finite.
//   cost    n m kernel evaluations; half of them when x is z
//   memory  panels of z and one tile per thread; a large `out` is written past the caches
//   order   every entry is computed inside one tile: the result does not depend on `threads`
template <class T>
bool gram(const Program& program, const Inputs<T>& in, T* out, int threads, const Poll& poll) {
    Prepared<T> prep(program, in, false, true);
    const int64_t nb = prep.row_blocks(), mb = prep.column_blocks();
    std::vector<int64_t> start(1, 0);  // number of the first tile of each stripe
    for (int64_t I = 0; I < nb; ++I) start.push_back(start.back() + mb - prep.first(I));
    const bool past = past_caches<T>(in.n * in.m);
    std::atomic<bool> finite{true};
    Crew crew(crew_size(threads, prep.steps()), poll);
    crew.run(start.back(), [&](int worker, auto& take) {
        Workspace<T> workspace(prep);
        const T* K = workspace.work.result;
        for (int64_t t; (t = take()) >= 0;) {
            const int64_t I = std::upper_bound(start.begin(), start.end(), t) - start.begin() - 1;
            const int64_t J = prep.first(I) + t - start[size_t(I)];
            const Tile tile = prep.at(I, J);
            prep.isa.evaluate(prep.call, tile, workspace.work);
            if (in.same && I == J) mirror(workspace.work.result, tile.rows, tile.ld);
            T *here = out + tile.i0 * in.m + tile.j0, *there = out + tile.j0 * in.m + tile.i0;
            if (!prep.isa.copy(K, tile.rows, tile.cols, tile.ld, here, in.m, past)) finite = false;
            if (in.same && I != J) prep.isa.transpose(K, tile.rows, tile.cols, tile.ld, there, in.m, past);
            crew.checkpoint(worker);
        }
        prep.isa.drain();
    });
    return finite;
}

namespace {

// A run of tiles in one stripe, and the accumulator it adds to.
struct Task {
    std::vector<int64_t> stripes;
    int64_t j0, j1;  // column blocks; in same mode j0 is the stripe's own
    int64_t accumulator;
};

// Same mode: groups of stripes, each with its own accumulator, as a tile adds to rows I and J.
// Otherwise stripes own their rows; columns are cut only when there are few stripes.
template <class T> std::vector<Task> plan_apply(const Prepared<T>& prep, int64_t r, int64_t& accumulators) {
    const int64_t nb = prep.row_blocks(), mb = prep.column_blocks();
    std::vector<Task> tasks;
    if (prep.call.same) {
        accumulators = group_count(nb, prep.call.n * r * 8);
        auto hands = deal(nb, accumulators);
        for (int64_t g = 0; g < accumulators; ++g) tasks.push_back({std::move(hands[size_t(g)]), 0, mb, g});
        return tasks;
    }
    accumulators = std::clamp<int64_t>(32 / std::max<int64_t>(nb, 1), 1, (mb + 3) / 4);
    for (int64_t I = 0; I < nb; ++I)
        for (int64_t c = 0; c < accumulators; ++c)
            tasks.push_back({{I}, c * mb / accumulators, (c + 1) * mb / accumulators, c});
    return tasks;
}

}  // namespace

// out = K V, n*r, with V m*r.  K is never stored.
//   cost    n m kernel evaluations (half when x is z) and n m r multiply-adds
//   memory  one tile per thread; at most 32 float64 copies of out in same mode (fewer when out is large)
//   order   inside a tile in T, across tiles in float64, in an order fixed by the problem: bitwise the same
//           for any number of threads
template <class T>
void apply(const Program& program, const Inputs<T>& in, const T* V, int64_t r, T* out, int threads,
           const Poll& poll) {
    Prepared<T> prep(program, in, false);
    const int64_t P = prep.isa.panel, npanels = (r + P - 1) / P, wide = npanels * P;
    Buffer<T> packed(r > 1 ? wide * in.m : 0);
    if (r > 1 && in.m > 0) prep.isa.pack(V, r, in.m, 1, r, packed.get());
    int64_t accumulators = 1;
    const std::vector<Task> tasks =
        in.m > 0 && r > 0 ? plan_apply(prep, r, accumulators) : std::vector<Task>();
    const Buffer<double> sums = zeros(accumulators * in.n * r);
    // An entry that is not written takes three quarters of the time.
    Crew crew(crew_size(threads, prep.steps() / 4 * 3 + in.n * in.m * (r - 1)), poll);
    crew.run(int64_t(tasks.size()), [&](int worker, auto& take) {
        Workspace<T> workspace(prep);
        Buffer<T> products(prep.tile * wide);
        const T* K = workspace.work.result;
        // sums[a0 ...] += A V[b0 ...] for the tile or its transpose, r > 1.
        auto add = [&](int64_t rs, int64_t cs, int64_t a0, int64_t rows, int64_t b0, int64_t depth,
                       double* y) {
            prep.isa.multiply(K, rs, cs, rows, depth, packed.get() + b0 * P, P * in.m, npanels,
                              products.get(), wide, false);
            for (int64_t i = 0; i < rows; ++i)
                for (int64_t l = 0; l < r; ++l) y[(a0 + i) * r + l] += products.get()[i * wide + l];
        };
        for (int64_t t; (t = take()) >= 0;) {
            const Task& task = tasks[size_t(t)];
            double* y = sums.get() + task.accumulator * in.n * r;
            for (int64_t I : task.stripes)
                for (int64_t J = std::max(task.j0, prep.first(I)); J < task.j1; ++J) {
                    if (prep.left_out(I, J)) continue;
                    const Tile tile = prep.at(I, J);
                    const bool both = in.same && I != J;
                    prep.isa.evaluate(prep.call, tile, workspace.work);
                    if (in.same && I == J) mirror(workspace.work.result, tile.rows, tile.ld);
                    if (r == 1) {
                        prep.isa.matvec(K, tile.rows, tile.cols, tile.ld, V + tile.j0, y + tile.i0,
                                        both ? V + tile.i0 : nullptr, both ? y + tile.j0 : nullptr);
                    } else {
                        add(tile.ld, 1, tile.i0, tile.rows, tile.j0, tile.cols, y);
                        if (both) add(1, tile.ld, tile.j0, tile.cols, tile.i0, tile.rows, y);
                    }
                    crew.checkpoint(worker);
                }
        }
    });
    for (int64_t i = 0; i < in.n * r; ++i) {
        double total = 0;
        for (int64_t a = 0; a < accumulators; ++a) total += sums.get()[a * in.n * r + i];
        out[i] = T(total);
    }
}

// out[i] = k(x_i, x_i).
//   cost    n evaluations
template <class T>
void diag(const Program& program, const Inputs<T>& in, T* out, int threads, const Poll& poll) {
    Prepared<T> prep(program, in, true);
    const int64_t blocks = prep.row_blocks();
    Crew crew(crew_size(threads, prep.steps()), poll);
    crew.run(blocks, [&](int worker, auto& take) {
        Workspace<T> workspace(prep);
        for (int64_t J; (J = take()) >= 0;) {
            const Tile tile = prep.pairs(J);
            prep.isa.evaluate(prep.call, tile, workspace.work);
            std::memcpy(out + tile.j0, workspace.work.result, size_t(tile.cols) * sizeof(T));
            crew.checkpoint(worker);
        }
    });
}

template bool gram(const Program&, const Inputs<double>&, double*, int, const Poll&);
template bool gram(const Program&, const Inputs<float>&, float*, int, const Poll&);
template void apply(const Program&, const Inputs<double>&, const double*, int64_t, double*, int, const Poll&);
template void apply(const Program&, const Inputs<float>&, const float*, int64_t, float*, int, const Poll&);
template void diag(const Program&, const Inputs<double>&, double*, int, const Poll&);
template void diag(const Program&, const Inputs<float>&, float*, int, const Poll&);

}  // namespace mercer
