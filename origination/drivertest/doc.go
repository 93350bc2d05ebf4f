// Package drivertest is the common part of the tests of the drivers of FreeSWITCH and Asterisk: the
// cases for both (Suite), a platform that plays scripts (ScriptedPlatform), and access to a driver's reports (Journal),
// metrics and log (Probe).
package drivertest
