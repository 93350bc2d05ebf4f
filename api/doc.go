// Package api has every HTTP route of Trunkline: authentication, reading of
// requests, and the format of responses and errors. routes.go lists all routes;
// openapi.yaml and asyncapi.yaml describe them, and tests compare the two.
//
// It contains no product logic: a handler reads a request, calls one package, and writes
// the response. The errors of that package have a fault.Kind, which errors.go maps to an
// HTTP status.
//
// It starts no goroutines and has no state and no locks: a request is handled in the
// goroutine of net/http. The packages that it calls refuse requests on overload (429, 503).
// A body is never read past its limit.
//
// To add an area, add a file routes_<area>.go with the interface that it needs, a field in
// Deps, and its lines in routes.go. A nil field has no routes, so that a process has only
// the routes of its roles.
//
// # Files
//
// Read api.go and routes.go, then the routes_ file of a subject.
//
//   - api.go, config.go, settings.go, metrics.go: the API, what it needs, settings, metrics
//   - routes.go: every route
//   - auth.go, visible_rows.go, middleware.go: who calls, what rows it sees, and what is done with
//     every request
//   - cors.go, unknown_parameters.go: pages of other origins; parameters that no route knows
//   - decode_body.go, body_budget.go, body_reader.go, json_object.go: bodies: their size, how many at
//     once, reading JSON with all its errors
//   - errors.go, respond.go, head_request.go: answers: errors by their kind, JSON, HEAD
//   - routes_portal.go, routes_loginrules.go, routes_oidc.go: logins
//   - directory_interfaces.go, routes_directory.go, routes_accounts.go, routes_users.go, routes_devices.go,
//     routes_apikeys.go, routes_audit.go: accounts, users, devices, keys; the audit log
//   - routes_ingest.go, routes_channel.go, routes_webhooks.go, routes_explain.go,
//     routes_deadletters.go: events in, the events channel, webhooks, explanations, dead letters
//   - routes_reports.go, routes_queueconfig.go, routes_alerts.go, routes_feeds.go: reports,
//     thresholds of queues, alerts, states of feeds
//   - routes_click_to_call.go, routes_call_listeners.go, routes_control.go, routes_aiproviders.go,
//     routes_aisessions.go, routes_twilio.go: calls, providers that listen to them, actions on agents and
//     calls, AI providers and sessions
//   - routes_recordings.go, stream_deadline.go, audio_writer.go, routes_encryption.go,
//     routes_recording_policy.go, routes_live_recording.go: recordings, slow uploads and downloads of them,
//     their encryption, which calls are recorded, and the recording of a call in progress
//   - routes_descriptions.go, descriptions_json.go: the descriptions themselves
package api
