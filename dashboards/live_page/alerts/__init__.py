"""What is alerted to on the live page: what springback decides itself, and what an Alertmanager says."""
