"""What things are called elsewhere, and here: for those who come from other libraries."""

from __future__ import annotations

# The first of these that there is, is meant.
MEANINGS = {
    word: names
    for names, words in {
        ("rate", "step_size", "delta", "sigma0"): "lr learning_rate policy_lr pi_lr actor_lr step_size",
        ("critic_rate",): "vf_lr value_lr critic_lr baseline_rate lr_critic",
        (
            "multiplier_rate",
            "price_rate",
            "penalty",
            "rho",
        ): "lambda_lr lagrangian_lr lagrange_lr multiplier_lr penalty_lr price_lr",
        ("last_layer",): "gain init_gain orthogonal_gain output_gain weight_gain init_scale",
        ("gae", "population"): "lambda lam lmbda",
        ("gae",): "gae_lambda td_lambda advantage_lambda",
        ("population",): "popsize pop_size population_size pop",
        ("iterations", "passes"): "epochs n_epochs num_epochs",
        (
            "iterations",
        ): "epoch iters iter n_iter max_iter num_iterations max_iterations n_iterations generations updates",
        ("steps",): "timesteps total_timesteps total_steps max_timesteps num_timesteps env_steps total_env_steps"
        " max_evaluations num_env_steps frames",
        ("epoch_steps",): "n_steps steps_per_epoch rollout_steps rollout_length batch num_steps nsteps",
        ("minibatches", "epoch_steps"): "batch_size minibatch_size mini_batch_size n_minibatches num_minibatches",
        ("passes",): "update_epochs sgd_iterations update_iters train_iters ppo_epochs",
        ("entropy", "mu"): "ent_coef entropy_coef entropy_coefficient ent_weight entropy_bonus entropy_weight",
        ("clip",): "clip_range clip_eps clip_ratio clip_coef epsilon clip_param",
        ("target_kl", "delta"): "kl max_kl kl_target trust_region desired_kl",
        ("discount",): "discount_factor",
        ("hidden",): "hidden_sizes hidden_layers layers net_arch hidden_size width network units",
        ("critic_hidden",): "critic_layers value_layers critic_sizes",
        ("log_std",): "std init_std log_std_init init_log_std noise action_noise exploration_noise",
        ("sigma0", "sigma"): "stepsize initial_sigma sigma_init",
        ("normalise",): "normalize norm_obs normalize_observations obs_norm normalize_obs",
        ("anneal",): "anneal_lr lr_schedule linear_schedule",
        ("price_reaction",): "kp",
        ("l2",): "weight_decay regularization",
        ("initial_tries",): "tries restarts random_starts warmup warm_start_tries",
        ("threshold", "limits"): "cost_limit cost_limits budget cost_budget limit thresholds constraint d0 max_cost",
        ("confidence",): "confidence_level significance",
        ("certify_episodes",): "eval_episodes n_eval_episodes test_episodes evaluation_episodes",
        ("workers",): "n_envs num_envs n_jobs num_workers processes cores cpus jobs threads",
        ("engine",): "device backend platform",
        ("out",): "output output_dir save_path log_dir logdir folder save_dir dir path tensorboard_log",
        ("init",): "init_from warm_start pretrained initial_policy start_from",
        ("seed",): "random_seed random_state rng",
        ("progress",): "verbose progress_bar quiet",
        ("step_timeout",): "timeout",
        ("algorithm",): "algo agent method policy",
        ("steps", "iterations"): "duration length",
        ("env_args",): "env_kwargs make_kwargs environment_kwargs env_options gym_kwargs",
        ("max_steps",): "max_episode_steps episode_length time_limit max_ep_len max_episode_length horizon",
    }.items()
    for word in words.split()
}
