"""What an agent's last answer must be: rules, how an answer is held against them, and what becomes of a bad one."""
