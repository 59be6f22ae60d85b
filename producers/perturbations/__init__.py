"""What a stress severity means: parameters of perturbations, without any simulator."""
