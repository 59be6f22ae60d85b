"""What a stress severity means as parameters of perturbations, instructions in other words, what disturbs Habitat."""
