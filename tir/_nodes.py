"""The names of :mod:`tir` that it takes from the modules of the language: nodes, types, errors, targets."""

# ruff: noqa: F401

from __future__ import annotations

from .buffer import Buffer, BufferRegion, IterVar, MatchBufferRegion, Range, decl_buffer
from .dtype import DType
from .errors import BuildError, ModelError, ParseError, RunError, ScheduleError, TirError, WellFormedError
from .expr import *  # noqa: F403
from .expr import Expr, FloatImm, IntImm, StringImm, Var, cast, const
from .function import IRModule, PrimFunc
from .stmt import (
    Allocate,
    AllocateConst,
    AssertStmt,
    AttrStmt,
    Block,
    BlockRealize,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
)
from .target import Target
