"""What the live page shows: a module for each page or panel, the frame around all, and `live_pages`."""
