// Package settings defines the settings of an operator, their sources, and what
// is wrong with it: one struct, its defaults, and a loader.
//
// Later wins: defaults, then the YAML file, then TRUNKLINE_* variables, then
// flags. All three spellings of a setting come from its yaml tags, and one
// parser reads its value wherever it was written.
//
// It does not guess: an unknown key or a value of the wrong type is a
// problem with its line, and a problem names the key and what to set instead. Only
// unknown environment variables are let pass, with a warning, because
// Kubernetes injects some of its own. It opens nothing but the files that hold
// settings, keeps no state and starts no goroutine. It never prints a secret.
package settings
