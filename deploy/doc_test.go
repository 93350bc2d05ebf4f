// Package deploy_test checks the files of deploy/ against the program: the metrics of dashboards
// and alerts and the settings of the examples must exist, and tools such as promtool must accept
// their files.
package deploy_test
