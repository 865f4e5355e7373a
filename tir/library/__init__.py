"""Programs with their schedules, ready to build: each is a function that says what, and one that says how.

>>> import tir
>>> from tir.library import gemm
>>> sch = gemm.schedule_gemm(tir.Schedule(gemm.gemm(64, 48, 32)))
"""
