"""What is learnt of a black box from its evaluations: regression models, and the programs that minimise them."""
