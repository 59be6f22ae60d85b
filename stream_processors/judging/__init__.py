"""An optional stage before the tracker: a language model scores the steps at which something happened."""
