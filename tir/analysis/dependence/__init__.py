"""The single question behind every refusal: do the dependences of the program before hold in the order after?

Two instances depend when they touch one element and at least one writes it. Reduction updates of one block commute
among themselves; its ``init`` comes first. Where an index is not quasi-affine the whole dimension counts as touched;
where an order cannot be written as exact sets, the answer is "cannot prove", with the reason.
"""
