// contract and contract_diag: all gradients of sum W*K at once, tile by tile.
#include "prepare.hpp"

namespace mercer {
namespace {

// One group's accumulators, laid out in one block of float64.
template <class T> class GradientLayout {
  public:
    GradientLayout(const Inputs<T>& in, const std::vector<char>& wanted, int64_t params, bool inputs)
        : in_(in), wanted_(wanted), params_(params), inputs_(inputs) {
        size = 0;
        parts([&](char, size_t, int64_t, int64_t length) { size += length; });
    }
    int64_t size;

    // Pointers into the block at `base`; calls part(which, index, begin, length) for every piece in order.
    template <class F> void parts(F part) const {
        int64_t at = 0;
        auto piece = [&](char which, size_t index, int64_t length) {
            part(which, index, at, length);
            at += length;
        };
        piece('p', 0, params_);
        for (size_t k = 0; k < in_.views.size(); ++k) piece('s', k, keeps(k) ? 2 * in_.views[k].d : 0);
        for (size_t k = 0; k < in_.rows.size(); ++k) piece('u', k, in_.n), piece('v', k, in_.m);
        for (size_t k = 0; k < in_.views.size() && inputs_; ++k)
            piece('x', k, in_.n * in_.views[k].d), piece('z', k, in_.m * in_.views[k].d);
    }

  private:
    // Sparse rows may have any number of columns: sums by column are kept only where they are wanted.
    bool keeps(size_t k) const { return wanted_[k] || !in_.views[k].sparse; }

    const Inputs<T>& in_;
    const std::vector<char>& wanted_;
    int64_t params_;
    bool inputs_;
};

struct GradientPointers {
    std::vector<double*> views, u, v, x, z;
    Gradient gradient{};
    template <class T>
    GradientPointers(const GradientLayout<T>& layout, double* base, bool inputs,
                     const std::vector<char>& wanted) {
        double* params = base;
        layout.parts([&](char which, size_t, int64_t begin, int64_t) {
            double* p = base + begin;
            switch (which) {
                case 's': views.push_back(p); break;
                case 'u': u.push_back(p); break;
                case 'v': v.push_back(p); break;
                case 'x': x.push_back(p); break;
                case 'z': z.push_back(p); break;
            }
        });
        gradient = {params,
                    views.data(),
                    u.data(),
                    v.data(),
                    inputs ? x.data() : nullptr,
                    inputs ? z.data() : nullptr,
                    wanted.data()};
    }
};

// The groups summed in order, cut into the answer.
template <class T>
Gradients sum_of_groups(const GradientLayout<T>& layout, const double* accumulators, int64_t groups) {
    Gradients out;
    layout.parts([&](char which, size_t, int64_t begin, int64_t length) {
        std::vector<double> sum(size_t(length), 0.0);
        for (int64_t g = 0; g < groups; ++g)
            for (int64_t i = 0; i < length; ++i) sum[size_t(i)] += accumulators[g * layout.size + begin + i];
        switch (which) {
            case 'p': out.params = std::move(sum); break;
            case 's': out.views.push_back(std::move(sum)); break;
            case 'u': out.u.push_back(std::move(sum)); break;
            case 'v': out.v.push_back(std::move(sum)); break;
            case 'x': out.x.push_back(std::move(sum)); break;
            case 'z': out.z.push_back(std::move(sum)); break;
        }
    });
    return out;
}

template <class T> void check_inputs(const Inputs<T>& in, bool inputs) {
    for (auto& v : in.views)
        if (inputs && v.sparse)
            throw std::invalid_argument("input gradients need dense rows; a view is sparse");
}

// Per view: whether its coordinates are owed a gradient.
template <class T> std::vector<char> wanted_views(const Inputs<T>& in) {
    std::vector<char> all(in.views.size(), 1);
    if (in.wanted.empty()) return all;
    if (in.wanted.size() != all.size())
        throw std::invalid_argument("wanted has " + std::to_string(in.wanted.size()) +
                                    " entries; there are " + std::to_string(all.size()) + " views");
    return in.wanted;
}

// seeds = W on a tile, folded with its transpose where the tile also stands for its mirror image.
template <class T> class Seeds {
  public:
    Seeds(const Prepared<T>& prep, const Weights<T>& weights) : prep_(prep), w_(weights) {
        const int64_t n = prep.call.n, m = prep.call.m, r = w_.r;
        if (w_.w || n == 0 || m == 0) return;
        v_.reset(round_up(m, prep.isa.panel) * r);
        prep.isa.pack(w_.v, m, r, r, 1, v_.get());
        if (!prep.call.same) return;
        u_.reset(round_up(n, prep.isa.panel) * r);
        prep.isa.pack(w_.u, n, r, r, 1, u_.get());
    }
    void fill(const Tile& t, bool fold, T* out) const {
        const int64_t P = prep_.isa.panel, m = prep_.call.m, r = w_.r;
        if (w_.w) {
            if (fold) prep_.isa.transpose(w_.w + t.j0 * m + t.i0, t.cols, t.rows, m, out, t.ld, false);
            for (int64_t i = 0; i < t.rows; ++i) {
                const T* from = w_.w + (t.i0 + i) * m + t.j0;
                T* to = out + i * t.ld;
                for (int64_t j = 0; j < t.cols; ++j) to[j] = fold ? to[j] + from[j] : from[j];
            }
        } else {
            prep_.isa.multiply(w_.u + t.i0 * r, r, 1, t.rows, r, v_.get() + t.j0 * r, P * r, t.ld / P, out,
                               t.ld, false);
            if (fold)
                prep_.isa.multiply(w_.v + t.i0 * r, r, 1, t.rows, r, u_.get() + t.j0 * r, P * r, t.ld / P,
                                   out, t.ld, true);
        }
        for (int64_t i = 0; i < t.rows; ++i) std::fill(out + i * t.ld + t.cols, out + (i + 1) * t.ld, T(0));
    }

  private:
    const Prepared<T>& prep_;
    const Weights<T>& w_;
    Buffer<T> u_, v_;
};

}  // namespace

// Gradients of L = sum_ij W_ij k(x_i, z_j) in parameters, row vectors, coordinates and, if asked, inputs.
//   cost    about three times gram (half of it in same mode), plus n m r for W = U V'
//   memory  at most 32 sets of accumulators (fewer if they are large); a strip-sized tape per thread
//   order   tiles of a group in order, groups in order: bitwise the same for any number of threads
template <class T>
Gradients contract(const Program& program, const Inputs<T>& in, const Weights<T>& weights, bool inputs,
                   int threads, const Poll& poll) {
    check_inputs(in, inputs);
    Prepared<T> prep(program, in, false);
    const std::vector<char> wanted = wanted_views(in);
    const Seeds<T> seeds(prep, weights);
    const GradientLayout<T> layout(in, wanted, int64_t(program.params.size()), inputs);
    const int64_t stripes = in.m > 0 ? prep.row_blocks() : 0;
    const int64_t groups = group_count(stripes, layout.size * 8);
    const auto hands = deal(stripes, groups);
    const Buffer<double> accumulators = zeros(groups * layout.size);
    Crew crew(crew_size(threads, prep.steps()), poll);
    crew.run(groups, [&](int worker, auto& take) {
        Workspace<T> workspace(prep, &wanted);
        for (int64_t g; (g = take()) >= 0;) {
            const GradientPointers to(layout, accumulators.get() + g * layout.size, inputs, wanted);
            for (int64_t I : hands[size_t(g)])
                for (int64_t J = prep.first(I); J < prep.column_blocks(); ++J) {
                    if (prep.left_out(I, J)) continue;
                    const Tile tile = prep.at(I, J);
                    seeds.fill(tile, in.same && I != J, workspace.work.seeds);
                    prep.isa.differentiate(prep.call, tile, workspace.work, to.gradient);
                    crew.checkpoint(worker);
                }
        }
    });
    return sum_of_groups(layout, accumulators.get(), groups);
}

// The same for L = sum_i w_i k(x_i, x_i).
template <class T>
Gradients contract_diag(const Program& program, const Inputs<T>& in, const T* w, bool inputs, int threads,
                        const Poll& poll) {
    (void)threads;  // O(n d) work: one thread is enough
    check_inputs(in, inputs);
    Prepared<T> prep(program, in, true);
    const std::vector<char> wanted = wanted_views(in);
    const GradientLayout<T> layout(in, wanted, int64_t(program.params.size()), inputs);
    const Buffer<double> accumulators = zeros(layout.size);
    Crew crew(1, poll);
    crew.run(1, [&](int worker, auto& take) {
        Workspace<T> workspace(prep, &wanted);
        const GradientPointers to(layout, accumulators.get(), inputs, wanted);
        if (take() < 0) return;
        for (int64_t J = 0; J < prep.row_blocks(); ++J) {
            const Tile tile = prep.pairs(J);
            std::copy(w + tile.j0, w + tile.j0 + tile.cols, workspace.work.seeds);
            std::fill(workspace.work.seeds + tile.cols, workspace.work.seeds + tile.ld, T(0));
            prep.isa.differentiate(prep.call, tile, workspace.work, to.gradient);
            crew.checkpoint(worker);
        }
    });
    return sum_of_groups(layout, accumulators.get(), 1);
}

#define MERCER_INSTANTIATE(T)                                                                   \
    template Gradients contract(const Program&, const Inputs<T>&, const Weights<T>&, bool, int, \
                                const Poll&);                                                   \
    template Gradients contract_diag(const Program&, const Inputs<T>&, const T*, bool, int, const Poll&);
MERCER_INSTANTIATE(double)
MERCER_INSTANTIATE(float)

}  // namespace mercer
