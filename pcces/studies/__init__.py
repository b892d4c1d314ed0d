"""The paper's figures and tables run again, and what came out. No part of the library: `pcces reproduce` and `pcces report` of
a folder of results import it when they run, and nothing else does.

What is to run: `experiment` and `arms` (what they are), `protocol` (tasks, sizes, scales), `catalogue` (all of them),
`selection` (what was asked for). Running it: `study`, `worker`, `display`. What came out: `store` (files), `arm_results`,
`policies`, `measures`. What it says: `statistics`, `claims`, `verdicts`. Showing it: `tables`, `charts`, `markdown_page`,
`html_page`.
"""
