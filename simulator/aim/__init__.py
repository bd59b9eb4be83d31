"""Replay of AiM instruction traces with the rules of the public AiM simulator, cycle by cycle.

In the order of the flow: `instructions` (the table of instructions), `trace` (text to records), `requests` (records to
what the channels execute), `rules` (the device's timing and the controller's facts as arrays), `channel` and `engine`
(the controllers and the DMA, compiled), `replay` (from a file to every command and its cycle), `command_csv` (the
result as a table), `reference` (the same rules once more, short and slow: the oracle of the engine).
"""
