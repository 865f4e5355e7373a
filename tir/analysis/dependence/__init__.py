"""The question behind every refusal: are the dependences of the old program preserved by the new order?

Two instances depend on each other if they access the same element and at least one writes it. Reduction updates of one
block commute; its ``init`` comes first. An index that is not quasi-affine counts as the entire dimension; if an order
cannot be written as exact sets, the answer is "cannot prove", with the reason.
"""
