// The q x q problem of one working set, as the inner solver reads it: its arrays and its block of K.
#pragma once
#include <algorithm>
#include <vector>

#include "prepare.hpp"
#include "qp_cache.hpp"
#include "qp_iterate.hpp"

namespace mercer {

// A variable sits at one place, padding at the others: two groups (the second may be empty), each padded.
template <class T> class WorkingSet {
  public:
    WorkingSet(const QpProblem& problem, RowSource<T>& source, QpMemory& memory)
        : p_(problem), source_(source), memory_(memory) {}

    std::vector<int64_t> variable;  // -1 for padding
    LineVector<double> diag, v, value, lo, hi, rise, fall;
    std::vector<const T*> rows;
    LineVector<float> float32[4];  // diag, v, rise, fall
    int64_t split = 0;             // where the second group begins

    int64_t size() const { return int64_t(variable.size()); }

    // Makes room for these variables; every entry is that of padding.
    void assign(std::vector<int64_t> first, const std::vector<int64_t>& second) {
        variable = std::move(first);
        pad();
        split = size();
        variable.insert(variable.end(), second.begin(), second.end());
        pad();
        const size_t q = variable.size();
        for (auto* a : {&diag, &v, &value, &lo, &hi}) a->assign(q, 0.0);
        rise.assign(q, kQpNever);
        fall.assign(q, kQpNever);
        rows.resize(q);
    }
    // The block K[W, W] from its rows, each once; number_of_row[r] is the place of row r among them.  Where
    // every variable has a row of its own, the block is computed in the order of the variables; otherwise
    // the block of the rows is computed and expanded.
    void compute_block(const std::vector<int64_t>& row_list, const std::vector<int64_t>& number_of_row,
                       int threads, const Poll& poll) {
        const int64_t q = size();
        const int64_t padding = std::count(variable.begin(), variable.end(), int64_t(-1));
        const bool one_row_each = q - padding == int64_t(row_list.size());
        std::vector<int64_t> which = row_list;
        if (one_row_each) {
            // Padding reads anything: it is never chosen.
            which.assign(size_t(q), row_list[0]);
            for (int64_t k = 0; k < q; ++k)
                if (variable[size_t(k)] >= 0) which[size_t(k)] = row_of(k);
        }
        const int64_t side = int64_t(which.size());
        T* square = memory_.square.room<T>(side * side);
        source_.square(which, square, threads, poll);
        block_in_use_ = one_row_each ? square : expanded(square, side, number_of_row);
    }
    bool has_block() const { return block_in_use_ != nullptr; }
    void use_block() {
        for (size_t k = 0; k < rows.size(); ++k) rows[k] = block_in_use_ + k * rows.size();
    }
    // Rows of K[W, W] one by one, when the inner solver first asks for them.  For sets that hold every
    // variable: the order never changes, and rows that are there stay.
    void use_rows_on_demand() {
        const int64_t q = size();
        if (copied_.empty()) {
            copied_.assign(size_t(q), nullptr);
            block_ = memory_.block.room<T>(q * q);
            std::vector<int64_t> columns;
            // Padding reads anything.
            for (int64_t i : variable) columns.push_back(p_.rows[i < 0 ? 0 : i]);
            source_.focus(columns);
            copy_row(0);
        }
        rows = copied_;
    }
    const T* copy_row(int64_t k) {
        T* to = block_ + k * size();
        source_.rows({row_of(k)}, &to, 1, {});
        return copied_[size_t(k)] = to;
    }

  private:
    void pad() { variable.resize(size_t(round_up(size(), kQpPad)), -1); }
    int64_t row_of(int64_t k) const { return p_.rows[variable[size_t(k)]]; }

    const T* expanded(const T* square, int64_t side, const std::vector<int64_t>& number_of_row) {
        const int64_t q = size();
        std::vector<int64_t> at(size_t(q), 0);
        for (int64_t k = 0; k < q; ++k)
            if (variable[size_t(k)] >= 0) at[size_t(k)] = number_of_row[size_t(row_of(k))];
        block_ = memory_.block.room<T>(q * q);
        for (int64_t k = 0; k < q; ++k) {
            if (variable[size_t(k)] < 0) continue;
            T* to = block_ + k * q;
            const T* from = square + at[size_t(k)] * side;
            for (int64_t l = 0; l < q; ++l) to[l] = from[at[size_t(l)]];
        }
        return block_;
    }

    const QpProblem& p_;
    RowSource<T>& source_;
    QpMemory& memory_;
    T* block_ = nullptr;
    const T* block_in_use_ = nullptr;
    std::vector<const T*> copied_;
};

}  // namespace mercer
