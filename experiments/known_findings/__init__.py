"""Known findings about processing in memory, reproduced by simulation: each with its source, table and panel.

`measure` weighs a device with a schedule that suits it; a module per finding says what is known, measures and draws;
`figure` puts the panels together; `python -m experiments.known_findings` writes everything.
"""
