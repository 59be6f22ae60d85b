"""What a stress severity means as parameters of perturbations, and what disturbs Habitat by them."""
