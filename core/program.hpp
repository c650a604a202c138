// Programs: a kernel as a short postfix program, checked once at birth so that no later loop needs to.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace mercer {

// X(name, kind, what a means, what b means).  The number of an opcode is its position.
#define MERCER_OPCODES(X)                \
    X(SQDIST, Primitive, View, None)     \
    X(DOT, Primitive, View, None)        \
    X(L1, Primitive, View, None)         \
    X(PERIODIC, Primitive, View, Column) \
    X(COSPROD, Primitive, View, None)    \
    X(ALLSUBSETS, Primitive, View, None) \
    X(MINSUM, Primitive, View, None)     \
    X(MINPROD, Primitive, View, None)    \
    X(CHI2, Primitive, View, None)       \
    X(CONST, Constant, Param, None)      \
    X(DELTA, Constant, Param, None)      \
    X(AFFINE, Unary, Param, Param)       \
    X(EXP, Unary, None, None)            \
    X(LOG, Unary, None, None)            \
    X(LOG1P, Unary, None, None)          \
    X(SQRT, Unary, None, None)           \
    X(RECIPROCAL, Unary, None, None)     \
    X(ABS, Unary, None, None)            \
    X(SIN, Unary, None, None)            \
    X(COS, Unary, None, None)            \
    X(TANH, Unary, None, None)           \
    X(LOGISTIC, Unary, None, None)       \
    X(POWI, Unary, None, Natural)        \
    X(POW, Unary, Param, None)           \
    X(RBF, Unary, None, None)            \
    X(EXPNEG, Unary, None, None)         \
    X(MATERN32, Unary, None, None)       \
    X(MATERN52, Unary, None, None)       \
    X(RQ, Unary, Param, None)            \
    X(HORNER, Unary, ParamRange, Count)  \
    X(ARCCOS, Unary, Row, Order)         \
    X(ROWSCALE, Unary, Row, None)        \
    X(ADD, Binary, None, None)           \
    X(MUL, Binary, None, None)           \
    X(MAX, Binary, None, None)           \
    X(MIN, Binary, None, None)

enum Opcode : int32_t {
#define MERCER_NAME(name, kind, a, b) name,
    MERCER_OPCODES(MERCER_NAME)
#undef MERCER_NAME
        kOpcodes
};

const char* opcode_name(int32_t code);

// One step, with the steps that made its operands: the postfix stack resolved once.
struct Op {
    int32_t code, a, b;
    int32_t left, right;  // steps whose values are read; -1 where there is none
    int32_t depth;        // stack slot the value lands in
    int32_t primitive;    // running number among the primitives, -1 for other steps
    int32_t twin;         // number of the first primitive that reads the same: its values are shared
    bool shared;          // whether another primitive has the same twin
};

struct Program {
    std::vector<Op> ops;
    std::vector<double> params;
    int32_t depth = 0;                         // deepest stack
    int32_t primitives = 0;                    // number of steps that read a view
    int32_t views = 0, rows = 0, columns = 0;  // how many of each a call must bring at least
};

// Builds a program from k rows (opcode, a, b); throws std::invalid_argument naming the faulty step.
// After it: every operand exists, every parameter index is in range, one value is left at the end.
Program make_program(const int32_t* code, int64_t k, const double* params, int64_t p);

}  // namespace mercer
