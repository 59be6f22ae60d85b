"""Every metric that springback exports, declared once: nothing else spells a metric's name."""
