"""An optional stage before the tracker: a language model scores steps where something happened."""
