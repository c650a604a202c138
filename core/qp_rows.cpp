// Where the solver's rows of K come from: an array, or the tile engine.
#include <cmath>

#include "prepare.hpp"
#include "qp.hpp"
#include "qp_dense_rows.hpp"

namespace mercer {
namespace {

// ---- the tile engine -----------------------------------------------------------------------------------

// Some observations of a caller's sample, in precision T, contiguous.
template <class T> struct Sample {
    std::vector<std::vector<T>> dense, values, u;  // per view, per view (sparse data), per row vector
    Inputs<T> in;
};

// Sparse rows that are mostly full are better written out: then they can be centred, too.
constexpr int64_t kDenser = 2;

template <class S> bool worth_dense(const SparseRows<S>& s, int64_t d) {
    return s.rows > 0 && d * s.rows <= kDenser * int64_t(s.indices.size()) && d * s.rows <= int64_t(1) << 28;
}

// `origin`: per view empty, or a point to subtract from its rows.
using Origins = std::vector<std::vector<double>>;

// `may_densify`: sparse rows may be written out.
template <class T, class S>
void take_rows(const Inputs<S>& from, const std::vector<int64_t>& which, Sample<T>& to,
               const Origins& origin = {}, bool may_densify = true) {
    const int64_t count = int64_t(which.size());
    to.dense.assign(from.views.size(), {});
    to.values.assign(from.views.size(), {});
    to.u.assign(from.rows.size(), {});
    to.in = {};
    to.in.n = to.in.m = count;
    to.in.same = true;
    to.in.columns = from.columns;
    for (size_t k = 0; k < from.views.size(); ++k) {
        const ViewInput<S>& v = from.views[k];
        const double* o = k < origin.size() && !origin[k].empty() ? origin[k].data() : nullptr;
        ViewInput<T> w;
        w.d = v.d;
        if (!v.sparse) {
            to.dense[k].reserve(size_t(count * v.d));
            for (int64_t r : which) {
                const S* row = v.x + r * v.d;
                to.dense[k].insert(to.dense[k].end(), row, row + v.d);
                T* taken = to.dense[k].data() + to.dense[k].size() - v.d;
                for (int64_t c = 0; o && c < v.d; ++c) taken[c] = T(double(row[c]) - o[c]);
            }
        } else if (may_densify && worth_dense(v.sx, v.d)) {
            to.dense[k].resize(size_t(count * v.d));
            for (int64_t i = 0; i < count * v.d; ++i) to.dense[k][size_t(i)] = T(o ? -o[i % v.d] : 0.0);
            for (int64_t i = 0; i < count; ++i)
                for (int64_t a = v.sx.indptr[size_t(which[size_t(i)])];
                     a < v.sx.indptr[size_t(which[size_t(i)]) + 1]; ++a)
                    to.dense[k][size_t(i * v.d + v.sx.indices[size_t(a)])] =
                        T(double(v.sx.data[a]) - (o ? o[v.sx.indices[size_t(a)]] : 0.0));
        } else {
            w.sparse = true;
            w.sx.rows = count;
            w.sx.indptr.push_back(0);
            for (int64_t r : which) {
                for (int64_t a = v.sx.indptr[size_t(r)]; a < v.sx.indptr[size_t(r) + 1]; ++a) {
                    w.sx.indices.push_back(v.sx.indices[size_t(a)]);
                    to.values[k].push_back(T(v.sx.data[a]));
                }
                w.sx.indptr.push_back(int64_t(w.sx.indices.size()));
            }
            w.sx.data = to.values[k].data();
        }
        w.x = to.dense[k].data();
        to.in.views.push_back(std::move(w));
    }
    for (size_t k = 0; k < from.rows.size(); ++k) {
        for (int64_t r : which) to.u[k].push_back(T(from.rows[k].u[r]));
        to.in.rows.push_back({to.u[k].data(), nullptr});
    }
}

// The mean row of each view that only squared distances read: around it float32 loses least to cancellation.
template <class S> Origins centres(const Program& program, const Inputs<S>& data) {
    Origins out(data.views.size());
    for (size_t k = 0; k < out.size(); ++k) {
        bool shifts = true, read = false;
        for (const Op& op : program.ops)
            if (op.primitive >= 0 && size_t(op.a) == k) read = true, shifts &= op.code == SQDIST;
        const ViewInput<S>& v = data.views[k];
        if (!read || !shifts || (v.sparse && !worth_dense(v.sx, v.d))) continue;
        out[k].assign(size_t(v.d), 0.0);
        if (v.sparse) {
            for (size_t a = 0; a < v.sx.indices.size(); ++a)
                out[k][size_t(v.sx.indices[a])] += double(v.sx.data[a]);
        } else {
            for (int64_t i = 0; i < data.n; ++i)
                for (int64_t c = 0; c < v.d; ++c) out[k][size_t(c)] += double(v.x[i * v.d + c]);
        }
        for (double& c : out[k]) c /= double(data.n);
    }
    return out;
}

// Up to so many a row in float32 takes less time than the first touch of its memory.
constexpr int64_t kCheapTerms = 128;

// The program with its DELTA steps (noise where both sides are one observation) worth nothing.
Program without_noise(const Program& program) {
    Program out = program;
    out.params.push_back(0.0);
    for (Op& op : out.ops)
        if (op.code == DELTA) op.code = CONST, op.a = int32_t(out.params.size()) - 1;
    return out;
}

// Some rows against prepared columns: fused tiles, each entry inside one tile.
template <class T> class Block {
  public:
    Block(const Program& program, const Sample<T>& columns) : prep_(program, columns.in, false) {}

    template <class Store> void run(const Sample<T>& x, int threads, const Poll& poll, const Store& store) {
        Call<T> call = prep_.call;
        std::vector<View<T>> views(call.views, call.views + x.in.views.size());
        std::vector<Row<T>> rows(call.rows, call.rows + x.in.rows.size());
        std::vector<Buffer<T>> norms;
        for (size_t k = 0; k < views.size(); ++k) {
            View<T>& v = views[k];
            const ViewInput<T>& w = x.in.views[k];
            v.x = w.x;
            v.sx = {w.sx.data, w.sx.indices.data(), w.sx.indptr.data()};
            if (!v.xx) continue;
            norms.emplace_back(x.in.n);
            if (w.sparse) {
                for (int64_t i = 0; i < x.in.n; ++i) {
                    double total = 0;
                    for (int64_t a = w.sx.indptr[size_t(i)]; a < w.sx.indptr[size_t(i) + 1]; ++a)
                        total += double(w.sx.data[a]) * double(w.sx.data[a]);
                    norms.back().get()[i] = T(total);
                }
            } else {
                prep_.isa.norms(w.x, x.in.n, w.d, norms.back().get());
            }
            v.xx = norms.back().get();
        }
        for (size_t k = 0; k < rows.size(); ++k) rows[k].u = x.u[k].data();
        call.n = x.in.n;
        call.same = false;
        call.views = views.data();
        call.rows = rows.data();
        const int64_t tile = prep_.tile, nb = (call.n + tile - 1) / tile, mb = (call.m + tile - 1) / tile;
        Crew crew(crew_size(threads, call.n * call.m * prep_.entry_steps()), poll);
        crew.run(mb, [&](int worker, auto& take) {
            Workspace<T> workspace(prep_);
            for (int64_t J; (J = take()) >= 0;)
                for (int64_t I = 0; I < nb; ++I) {
                    const int64_t i0 = I * tile, j0 = J * tile;
                    const int64_t height = std::min(tile, call.n - i0), width = std::min(tile, call.m - j0);
                    const Tile t{i0, height, j0, width, round_up(width, prep_.isa.panel), false};
                    prep_.isa.evaluate(call, t, workspace.work);
                    store(t, workspace.work.result);
                    crew.checkpoint(worker);
                }
        });
    }

  private:
    Prepared<T> prep_;
};

std::vector<int64_t> everything(int64_t n) {
    std::vector<int64_t> all(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) all[size_t(i)] = i;
    return all;
}

template <class T, class S> class TileRows final : public RowSource<T> {
  public:
    TileRows(const Program& program, const Inputs<S>& data, const std::vector<int64_t>& which, int threads,
             const Poll& poll)
        : quiet_(without_noise(program)), data_(int64_t(which.size()) == data.n ? data : part_.in) {
        if (int64_t(which.size()) < data.n) take_rows(data, which, part_);
        this->n = data_.n;
        if constexpr (std::is_same_v<S, double>) {
            diagonals(program, data_, threads, poll);
        } else {
            Sample<double> all;
            take_rows(data_, everything(data_.n), all);
            diagonals(program, all.in, threads, poll);
        }
        find_norms();
        this->exact = std::is_same_v<T, double>;
        if (!this->exact) origin_ = centres(program, data_);
        int64_t products = 0;
        for (const ViewInput<S>& v : data_.views) products += terms(v, data_.n);
        this->cheap = products <= kCheapTerms;
    }
    // For products alone, with diagonals that are known.
    TileRows(const Program& program, const Inputs<S>& data, const std::vector<int64_t>& which,
             const WholeGram& known)
        : quiet_(without_noise(program)), data_(int64_t(which.size()) == data.n ? data : part_.in) {
        if (int64_t(which.size()) < data.n) take_rows(data, which, part_);
        this->n = data_.n;
        for (int64_t r : which) {
            this->diag.push_back(known.diag[size_t(r)]);
            plain_.push_back(known.plain[size_t(r)]);
        }
        find_norms();
    }

    void focus(const std::vector<int64_t>& columns) override {
        place_.assign(size_t(this->n), -1);
        for (size_t c = 0; c < columns.size(); ++c) place_[size_t(columns[c])] = int64_t(c);
        take_rows(data_, columns, columns_, origin_);
        block_ = std::make_unique<Block<T>>(quiet_, columns_);
    }

    void rows(const std::vector<int64_t>& which, T* const* out, int threads, const Poll& poll) override {
        if (which.empty()) return;
        Sample<T> x;
        take(which, x);
        block_->run(x, threads, poll, [&](const Tile& t, const T* K) {
            for (int64_t i = 0; i < t.rows; ++i)
                std::memcpy(out[t.i0 + i] + t.j0, K + i * t.ld, size_t(t.cols) * sizeof(T));
        });
        for (size_t k = 0; k < which.size(); ++k) {
            const int64_t c = place_[size_t(which[k])];
            if (c >= 0) out[k][c] = T(this->diag[size_t(which[k])]);
        }
    }

    void square(const std::vector<int64_t>& which, T* out, int threads, const Poll& poll) override {
        Sample<T> x;
        take(which, x);
        gram(quiet_, x.in, out, threads, poll);
        const size_t q = which.size();
        for (size_t k = 0; k < q; ++k) out[k * q + k] = T(this->diag[size_t(which[k])]);
    }

    // The chosen rows meet each other in half of the pairs, and all the other rows once.
    void apply(const std::vector<int64_t>& which, const std::vector<double>& d, double* f, int threads,
               const Poll& poll) override {
        if (which.empty()) return;
        Sample<double> chosen, unchosen;
        take_rows(data_, which, chosen);
        std::vector<double> sum(which.size(), 0.0);
        mercer::apply(quiet_, chosen.in, d.data(), 1, sum.data(), threads, poll);
        for (size_t k = 0; k < which.size(); ++k)
            f[which[k]] += sum[k] + d[k] * (this->diag[size_t(which[k])] - plain_[size_t(which[k])]);
        std::vector<char> is_chosen(size_t(this->n), 0);
        for (int64_t r : which) is_chosen[size_t(r)] = 1;
        std::vector<int64_t> others;
        for (int64_t r = 0; r < this->n; ++r)
            if (!is_chosen[size_t(r)]) others.push_back(r);
        if (others.empty()) return;
        take_rows(data_, others, unchosen);
        for (size_t k = 0; k < unchosen.in.views.size(); ++k) {
            unchosen.in.views[k].z = chosen.in.views[k].x;
            unchosen.in.views[k].sz = chosen.in.views[k].sx;
        }
        for (size_t k = 0; k < unchosen.in.rows.size(); ++k) unchosen.in.rows[k].v = chosen.u[k].data();
        unchosen.in.m = int64_t(which.size());
        unchosen.in.same = false;
        sum.assign(others.size(), 0.0);
        mercer::apply(quiet_, unchosen.in, d.data(), 1, sum.data(), threads, poll);
        for (size_t k = 0; k < others.size(); ++k) f[others[k]] += sum[k];
    }

    // All of it, in float32.
    void write_whole(WholeGram& out, int threads, const Poll& poll) {
        out.entries.reset(this->n * this->n);
        out.diag = this->diag;
        out.plain = plain_;
        square(everything(this->n), out.entries.get(), threads, poll);
    }

  private:
    // Rows in focus are at hand in the precision of the engine.
    void take(const std::vector<int64_t>& which, Sample<T>& x) const {
        std::vector<int64_t> at;
        for (int64_t r : which)
            if (!place_.empty() && place_[size_t(r)] >= 0) at.push_back(place_[size_t(r)]);
        if (at.size() == which.size()) take_rows(columns_.in, at, x, {}, false);
        else take_rows(data_, which, x, origin_);
    }
    void find_norms() {
        for (double d : this->diag) this->norm.push_back(std::sqrt(std::abs(d)));
    }
    void diagonals(const Program& program, const Inputs<double>& in, int threads, const Poll& poll) {
        this->diag.resize(size_t(this->n));
        plain_.resize(size_t(this->n));
        mercer::diag(program, in, this->diag.data(), threads, poll);
        mercer::diag(quiet_, in, plain_.data(), threads, poll);
    }

    Program quiet_;
    Sample<S> part_;
    const Inputs<S>& data_;
    Origins origin_;
    std::vector<double> plain_;  // the diagonal without noise
    std::vector<int64_t> place_;
    Sample<T> columns_;
    std::unique_ptr<Block<T>> block_;
};

// Rows of a K that was computed as a whole in float32; exact products are those of the tile engine.
class KeptRows final : public RowSource<float> {
  public:
    KeptRows(std::unique_ptr<RowSource<float>> engine, const float* K, int64_t side,
             const std::vector<int64_t>& which)
        : engine_(std::move(engine)), entries_(K, side, which) {
        n = engine_->n;
        diag = engine_->diag;
        norm = engine_->norm;
        stored = cheap = true;
    }
    void focus(const std::vector<int64_t>& columns) override { entries_.focus(columns); }
    void rows(const std::vector<int64_t>& which, float* const* out, int threads, const Poll& poll) override {
        entries_.rows(which, out, threads, poll);
    }
    void square(const std::vector<int64_t>& which, float* out, int threads, const Poll& poll) override {
        entries_.square(which, out, threads, poll);
    }
    void apply(const std::vector<int64_t>& which, const std::vector<double>& d, double* f, int threads,
               const Poll& poll) override {
        engine_->apply(which, d, f, threads, poll);
    }

  private:
    std::unique_ptr<RowSource<float>> engine_;
    DenseRows<float, float> entries_;
};

}  // namespace

template <class T, class S>
std::unique_ptr<RowSource<T>> dense_rows(const S* K, int64_t n, const std::vector<int64_t>& which) {
    return std::make_unique<DenseRows<T, S>>(K, n, which);
}
template <class T, class S>
std::unique_ptr<RowSource<T>> tile_rows(const Program& program, const Inputs<S>& data,
                                        const std::vector<int64_t>& which, int threads, const Poll& poll) {
    check(program, data);
    return std::make_unique<TileRows<T, S>>(program, data, which, threads, poll);
}
template <class S>
void compute_whole(const Program& program, const Inputs<S>& data, WholeGram& out, int threads,
                   const Poll& poll) {
    check(program, data);
    const std::vector<int64_t> all = everything(data.n);
    TileRows<float, S>(program, data, all, threads, poll).write_whole(out, threads, poll);
}
template <class S>
std::unique_ptr<RowSource<float>> kept_rows(const WholeGram& K, const Program& program, const Inputs<S>& data,
                                            const std::vector<int64_t>& which) {
    auto engine = std::make_unique<TileRows<float, S>>(program, data, which, K);
    return std::make_unique<KeptRows>(std::move(engine), K.entries.get(), data.n, which);
}

template std::unique_ptr<RowSource<double>> dense_rows(const double*, int64_t, const std::vector<int64_t>&);
template std::unique_ptr<RowSource<float>> dense_rows(const float*, int64_t, const std::vector<int64_t>&);
template std::unique_ptr<RowSource<float>> dense_rows(const double*, int64_t, const std::vector<int64_t>&);
template std::unique_ptr<RowSource<double>> dense_rows(const float*, int64_t, const std::vector<int64_t>&);
template std::unique_ptr<RowSource<float>> tile_rows(const Program&, const Inputs<double>&,
                                                     const std::vector<int64_t>&, int, const Poll&);
template std::unique_ptr<RowSource<float>> tile_rows(const Program&, const Inputs<float>&,
                                                     const std::vector<int64_t>&, int, const Poll&);
template std::unique_ptr<RowSource<double>> tile_rows(const Program&, const Inputs<double>&,
                                                      const std::vector<int64_t>&, int, const Poll&);
template std::unique_ptr<RowSource<double>> tile_rows(const Program&, const Inputs<float>&,
                                                      const std::vector<int64_t>&, int, const Poll&);
template void compute_whole(const Program&, const Inputs<double>&, WholeGram&, int, const Poll&);
template void compute_whole(const Program&, const Inputs<float>&, WholeGram&, int, const Poll&);
template std::unique_ptr<RowSource<float>> kept_rows(const WholeGram&, const Program&, const Inputs<double>&,
                                                     const std::vector<int64_t>&);
template std::unique_ptr<RowSource<float>> kept_rows(const WholeGram&, const Program&, const Inputs<float>&,
                                                     const std::vector<int64_t>&);

namespace baseline { extern const QpIsa qp_table; }
#if defined(__x86_64__)
namespace avx2 { extern const QpIsa qp_table; }
namespace avx512 { extern const QpIsa qp_table; }
#endif

static const QpIsa& qp_isa() {
    const std::string name = current_isa().name;
#if defined(__x86_64__)
    if (name == "avx2") return avx2::qp_table;
    if (name == "avx512") return avx512::qp_table;
#endif
    return baseline::qp_table;
}
template <> const QpKernels<double>& qp_kernels<double>() { return qp_isa().f64; }
template <> const QpKernels<float>& qp_kernels<float>() { return qp_isa().f32; }
bool qp_solve_system(double* M, double* x, int64_t size) { return qp_isa().solve(M, x, size); }

}  // namespace mercer
