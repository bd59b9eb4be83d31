"""The small arithmetic of the timing tables: sums, differences, products and `max` over named parameters."""

import ast
from collections.abc import Mapping


def evaluate(expression: str, names: Mapping[str, int]) -> int:
    """Return the value of e.g. "nCL + nBL + 3 - nCWL"; raises ValueError for anything but arithmetic on known names."""
    try:
        tree = ast.parse(expression, mode="eval")
    except SyntaxError as error:
        raise ValueError(f"'{expression}' is not an arithmetic expression") from error
    return _value(tree.body, names, expression)


def _value(node: ast.expr, names: Mapping[str, int], expression: str) -> int:
    match node:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return number
        case ast.Name(id=name):
            if name not in names:
                raise ValueError(f"'{expression}' names {name}, which the timing section does not define")
            return names[name]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _value(left, names, expression) + _value(right, names, expression)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _value(left, names, expression) - _value(right, names, expression)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _value(left, names, expression) * _value(right, names, expression)
        case ast.Call(func=ast.Name(id="max"), args=arguments, keywords=[]) if arguments:
            return max(_value(argument, names, expression) for argument in arguments)
    raise ValueError(f"'{expression}' uses more than +, -, *, max and names")
