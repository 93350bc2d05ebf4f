// Package settings defines the settings of a process in one struct. It loads and validates
// them.
//
// Later sources override earlier ones: defaults, then the YAML file, then TRUNKLINE_*
// variables, then flags. The name of a setting in each of them derives from its yaml tags,
// and the same parser reads its value from all of them.
//
// Unknown keys and values of a wrong type are errors (setting.Problem) with the line, the
// key and a valid value. Unknown environment variables are accepted with a warning,
// because Kubernetes injects some with this prefix. The package opens only files with
// settings, keeps no state and starts no goroutine. It never prints a secret.
//
// # Files
//
// Read settings.go, then setting_tree.go: the structs as keys.
//
//   - settings.go, validate.go, reserved_domains.go: the settings, their checks across groups, names that
//     no account may have
//   - setting_tree.go: keys and values, by the tags
//   - load.go, yaml_file.go, env.go, flags.go: reading file, environment and flags
//   - named_files.go: the files that settings name
//   - print_yaml.go: the effective settings as a file
package settings
