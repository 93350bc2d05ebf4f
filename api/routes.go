package api

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"trunkline/identity"
	"trunkline/recording"
	"trunkline/stats/figures"
)

// route is a method and a path. openapi.yaml describes each.
type route struct {
	method, path string
	handle       echo.HandlerFunc
	// scope is the scope that an API key needs; "" if no API key is accepted.
	scope identity.Scope
	// query has the names of the parameters in the query; any other is refused.
	query []string
	// anyQuery is true of pages and redirects whose query others write.
	anyQuery bool
	// also are the roles beside admin and user that the route is for. Other roles are refused.
	also roles
	// noTimeout is true if the handler bounds its duration and requestTimeout does not
	// apply.
	noTimeout bool
	// longLived is true if the client decides when the request ends. requestTimeout does
	// not apply and the duration is not measured.
	longLived bool
}

// Prefixes of the events channel's two sets of paths, which have the same routes. Clients may use either.
const (
	channelPrefix   = "/api/v2/cc_events_channel"
	channelWSPrefix = "/ws/v1/cc_events"
)

// routes returns every route of this process.
func (a *API) routes() []route {
	routes := []route{
		{method: http.MethodGet, path: "/openapi.yaml", handle: serveFile("openapi.yaml")},
		{method: http.MethodGet, path: "/asyncapi.yaml", handle: serveFile("asyncapi.yaml")},
		{method: http.MethodGet, path: "/openapi.json", handle: serveFileAsJSON("openapi.yaml")},
		{method: http.MethodGet, path: "/asyncapi.json", handle: serveFileAsJSON("asyncapi.yaml")},
		{method: http.MethodGet, path: "/schemas/:name", handle: serveSchema},
	}
	board := a.config.Board
	if board != nil {
		for _, path := range []string{"/", "/board/:file", "/docs", "/docs/:page", "/docs/:folder/:page"} {
			routes = append(routes,
				route{method: http.MethodGet, path: path, handle: echo.WrapHandler(board), anyQuery: true})
		}
	}

	if a.deps.Portal != nil {
		p := portalRoutes{a.deps.Portal, a.deps.Sessions}
		routes = append(routes,
			route{method: http.MethodPost, path: "/ucp/v2/login", handle: p.handleLogin},
			route{method: http.MethodPost, path: "/ucp/v2/login/refresh", handle: p.handleRefresh},
			route{method: http.MethodPost, path: "/ucp/v2/logout",
				handle: authorized(a.auth.authenticateUser, p.handleLogout), also: everyRole},
			route{method: http.MethodPut, path: "/ucp/v2/password",
				handle: authorized(a.auth.authenticateUser, p.handleChangePassword), also: everyRole},
			route{method: http.MethodPost, path: "/ucp/v2/otp", handle: p.handleEnrolOTP},
			route{method: http.MethodPut, path: "/ucp/v2/otp", handle: p.handleConfirmOTP},
			route{method: http.MethodGet, path: loginRulesPath,
				handle: authorized(a.auth.authenticateAdmin, p.handleGetLoginRules), also: auditors},
			route{method: http.MethodPut, path: loginRulesPath,
				handle: authorized(a.auth.authenticateAdmin, p.handlePutLoginRules)},
			route{method: http.MethodGet, path: "/.well-known/jwks.json", handle: p.handleKeySet},
		)
		routes = append(routes, oidcRoutes{a.deps.Portal, a.deps.Sessions}.routes()...)
	}

	if a.deps.Directory != nil {
		routes = append(routes, directoryRoutes{a.deps.Directory, a.deps.OTPs, a.auth}.routes()...)
	}

	if a.deps.Ingest != nil {
		i := ingestRoutes{a.deps.Ingest}
		routes = append(routes,
			route{method: http.MethodPost, path: "/api/v2/ingest/:format",
				handle: authorized(a.auth.authenticateAPIKey, i.handleAccept), scope: identity.ScopeIngest,
				query: []string{"uuid"}, noTimeout: true},
		)
	}

	if a.deps.Channel != nil {
		c := channelRoutes{a.deps.Channel, a.deps.ChannelLogins, a.deps.ChannelTokens, a.auth}
		routes = append(routes, c.routes(channelPrefix, channelPrefix+"/ws")...)
		routes = append(routes, c.routes(channelWSPrefix, channelWSPrefix)...)
	}

	if a.deps.Encryption != nil {
		e := encryptionRoutes{a.deps.Encryption, a.auth}
		const path = "/api/v2/config/call_recording_encryption"
		routes = append(routes,
			route{method: http.MethodGet, path: path, handle: authorized(a.auth.authenticateAdmin, e.handleGet),
				also: auditors},
			route{method: http.MethodPut, path: path, handle: e.handlePut},
		)
	}

	if a.deps.RecordingPolicies != nil {
		p := recordingPolicyRoutes{a.deps.RecordingPolicies, a.deps.LiveRecorder}
		routes = append(routes,
			route{method: http.MethodGet, path: recordingPolicyPath,
				handle: authorized(a.auth.authenticateAdmin, p.handleGet), also: auditors},
			route{method: http.MethodPut, path: recordingPolicyPath,
				handle: authorized(a.auth.authenticateAdmin, p.handlePut)},
		)
	}

	if a.deps.LiveRecorder != nil {
		r := liveRecordingRoutes{a.deps.LiveRecorder}
		routes = append(routes, route{method: http.MethodPost, path: "/api/v2/calls/:origination_call_id/recording",
			handle: authorized(a.auth.authenticateAccountAdmin, r.handleControl), scope: identity.ScopeControl})
	}

	if a.deps.CallListeners != nil {
		l := listenerRoutes{a.deps.CallListeners}
		routes = append(routes, route{method: http.MethodPost, path: "/api/v2/calls/:origination_call_id/listeners",
			handle: authorized(a.auth.authenticateAccountAdmin, l.handleStart), scope: identity.ScopeControl})
	}

	if a.deps.QueueConfigs != nil {
		q := queueConfigRoutes{a.deps.QueueConfigs, a.deps.Audit}
		routes = append(routes,
			route{method: http.MethodGet, path: queueConfigPath,
				handle: authorized(a.auth.authenticateAdmin, q.handleGet), also: auditors},
			route{method: http.MethodPut, path: queueConfigPath,
				handle: authorized(a.auth.authenticateAdmin, q.handlePut)},
		)
	}

	if a.deps.Recordings != nil {
		r := recordingRoutes{a.deps.Recordings, a.auth, rowVisibility{a.deps.Roster}, a.config.StallTimeout}
		const list, item = "/api/v2/recordings", "/api/v2/recordings/:" + paramRecording
		routes = append(routes,
			route{method: http.MethodGet, path: list, handle: authorized(r.account, r.handleList), also: everyRole,
				scope: identity.ScopeRecordings, query: recording.FilterParams()},
			route{method: http.MethodPut, path: item, handle: authorized(r.account, r.handleUpload),
				scope: identity.ScopeRecordings, query: recording.UploadParams(), noTimeout: true},
			route{method: http.MethodGet, path: item, handle: authorized(r.account, r.handleDownload),
				also: limitedRoles, scope: identity.ScopeRecordings, query: []string{"format"}, noTimeout: true},
			route{method: http.MethodDelete, path: item, handle: authorized(r.account, r.handleDelete),
				scope: identity.ScopeRecordings},
			route{method: http.MethodPut, path: item + "/hold", handle: authorized(r.account, r.handleHold),
				scope: identity.ScopeRecordings},
			route{method: http.MethodDelete, path: item + "/hold", handle: authorized(r.account, r.handleEndHold),
				scope: identity.ScopeRecordings},
			route{method: http.MethodGet, path: item + "/metadata", handle: authorized(r.account, r.handleMetadata),
				also: everyRole, scope: identity.ScopeRecordings},
		)
	}

	// Reports have noTimeout, because CSV takes as long as it takes: their pages get the timeout here.
	responses := reportResponses{a.deps.Audit, rowVisibility{a.deps.Roster}, withTimeout}
	if a.deps.CallReports != nil {
		r := callReportRoutes{responses, a.deps.CallReports}
		routes = append(routes,
			route{method: http.MethodGet, path: "/api/v2/reports/cdrs",
				handle: authorized(a.auth.authenticateAccount, r.handleCalls), also: limitedRoles,
				scope: identity.ScopeRead, noTimeout: true,
				query: []string{"startDate", "endDate", "origination_call_id", "interaction_id", "call_id", "from",
					"to", "number", "queue_id", "agent_id", "page_size", "start_key", "format"}},
		)
	}

	if a.deps.Figures != nil {
		f := figureRoutes{responses, a.deps.Figures}
		routes = append(routes,
			route{method: http.MethodGet, path: "/api/v2/reports/queues",
				handle: authorized(a.auth.authenticateAccount, f.report(figures.Queues, "queues")),
				also:   limitedRoles, scope: identity.ScopeRead, query: append([]string{"queue_id"}, figureParams...),
				noTimeout: true},
			route{method: http.MethodGet, path: "/api/v2/reports/agents",
				handle: authorized(a.auth.authenticateAccount, f.report(figures.Agents, "agents")),
				also:   limitedRoles, scope: identity.ScopeRead, query: append([]string{"agent_id"}, figureParams...),
				noTimeout: true},
		)
	}

	if a.deps.Abandoned != nil {
		r := abandonedRoutes{responses, a.deps.Abandoned}
		routes = append(routes,
			route{method: http.MethodGet, path: "/api/v2/reports/abandoned",
				handle: authorized(a.auth.authenticateAccount, r.handleList), also: limitedRoles,
				scope: identity.ScopeRead, noTimeout: true,
				query: []string{"startDate", "endDate", "queue_id", "caller", "page_size", "start_key", "format"}})
	}

	if a.deps.AlertConfigs != nil {
		routes = append(routes, alertConfigRoutes{a.deps.AlertConfigs, a.deps.Audit, a.auth}.routes()...)
	}
	if a.deps.Alerts != nil {
		routes = append(routes, alertRoutes{a.deps.Alerts, rowVisibility{a.deps.Roster}, a.auth}.routes()...)
	}
	if a.deps.Feeds != nil {
		routes = append(routes, feedRoutes{a.deps.Feeds, a.deps.Audit, a.auth}.routes()...)
	}
	if a.deps.DeadLetters != nil {
		routes = append(routes, deadLetterRoutes{a.deps.DeadLetters, a.deps.Audit, a.auth}.routes()...)
	}

	if a.deps.Audit != nil {
		l := auditRoutes{a.deps.Audit}
		routes = append(routes,
			route{method: http.MethodGet, path: "/api/v2/audit",
				handle: authorized(a.auth.authenticateAccountAdmin, l.handleList), also: auditors,
				scope: identity.ScopeRead,
				query: []string{"startDate", "endDate", "actor", "action", "page_size", "start_key"}})
	}

	if a.deps.Webhooks != nil {
		routes = append(routes, webhookRoutes{a.deps.Webhooks, a.auth}.routes()...)
	}
	if a.deps.Explain != nil {
		routes = append(routes, explainRoutes{a.deps.Explain, a.auth}.routes()...)
	}
	if a.deps.Control != nil {
		routes = append(routes, controlRoutes{a.deps.Control, a.auth}.routes()...)
	}
	if a.deps.Calls != nil {
		routes = append(routes, callRoutes{a.deps.Calls, a.auth}.routes()...)
	}

	return append(routes, a.aiRoutes()...)
}

// aiRoutes returns the routes of AI providers and their sessions.
func (a *API) aiRoutes() (routes []route) {
	if a.deps.AIProviders != nil {
		p := aiProviderRoutes{a.deps.AIProviders}
		const item = aiProvidersPath + "/:id"
		routes = append(routes,
			route{method: http.MethodGet, path: aiProvidersPath,
				handle: authorized(a.auth.authenticateAdmin, p.handleList), also: auditors, query: searchParams},
			route{method: http.MethodPost, path: aiProvidersPath,
				handle: authorized(a.auth.authenticateAdmin, p.handleCreate)},
			route{method: http.MethodGet, path: item, handle: authorized(a.auth.authenticateAdmin, p.handleGet),
				also: auditors},
			route{method: http.MethodPut, path: item, handle: authorized(a.auth.authenticateAdmin, p.handleReplace)},
			route{method: http.MethodDelete, path: item, handle: authorized(a.auth.authenticateAdmin, p.handleDelete)},
		)
	}

	if a.deps.AITester != nil {
		t := aiTestRoute{a.deps.AIProviderOpener, a.deps.AITester}
		routes = append(routes,
			route{method: http.MethodPost, path: aiProvidersPath + "/:id/test",
				handle: authorized(a.auth.authenticateAdmin, t.handleTest)})
	}

	s := aiSessionRoutes{a.deps.AIProviderOpener, a.deps.AIAnnouncer, a.deps.AIMedia, a.auth}
	if a.deps.AIAnnouncer != nil {
		routes = append(routes,
			route{method: http.MethodPost, path: "/api/v2/ai_sessions",
				handle: authorized(a.auth.authenticateAny, s.handleAnnounce), scope: identity.ScopeCalls})
	}

	if a.deps.AICalls != nil {
		t := twilioRoutes{a.deps.AICalls}
		routes = append(routes, route{method: http.MethodPost, path: twilioCallPath, handle: t.handleUpdate})
	}

	if a.deps.AIMedia != nil {
		routes = append(routes,
			route{method: http.MethodGet, path: mediaPath,
				handle: authorized(s.mediaCaller, s.handleSocket), scope: identity.ScopeCalls,
				query: []string{"token", "callerIdNumber", "calleeIdNumber", "otherLegCallId", "track",
					"sessionId"},
				longLived: true})
	}

	return routes
}
