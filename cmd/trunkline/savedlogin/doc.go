// Package savedlogin has the commands login and logout, and the session with which other commands call a
// server's REST API as the user who has logged in.
//
// The login is one file, login.json in the directory trunkline of the user's configuration
// ($XDG_CONFIG_HOME, else ~/.config), mode 0600. Access tokens last an hour and are renewed with
// the refresh token, which can be used once: concurrent commands renew one after another, under a
// lock.
package savedlogin
