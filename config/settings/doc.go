// Package settings defines the settings of a process: one struct, its defaults, a loader
// and the validation.
//
// Later sources override earlier ones: defaults, then the YAML file, then TRUNKLINE_*
// variables, then flags. The names of a setting in all of them come from its yaml tags,
// and one parser reads its value from all of them.
//
// Unknown keys and values of a wrong type are problems with their line; a problem names
// the key and a valid value. Only unknown environment variables are accepted, with a
// warning, because Kubernetes injects some of its own. The package opens only files with
// settings, keeps no state and starts no goroutine. It never prints a secret.
package settings
