package api

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"trunkline/identity"
)

const loginRulesPath = "/api/v2/config/login"

// loginRules are the login rules of an account. AdminOTP is "optional" or "required".
type loginRules struct {
	AdminOTP string `json:"admin_otp"`
}

func (p portalRoutes) handleGetLoginRules(c echo.Context, account identity.Account) error {
	return p.writeLoginRules(c, account.ID)
}

func (p portalRoutes) writeLoginRules(c echo.Context, accountID string) error {
	required, err := p.portal.OTPRequired(c.Request().Context(), accountID)
	if err != nil {
		return err
	}
	rules := loginRules{AdminOTP: "optional"}
	if required {
		rules.AdminOTP = "required"
	}
	return writeJSON(c, http.StatusOK, rules)
}

func (p portalRoutes) handlePutLoginRules(c echo.Context, account identity.Account) error {
	body, err := decode(c)
	if err != nil {
		return err
	}

	rule := body.String("admin_otp", required)
	if rule != "" && rule != "optional" && rule != "required" {
		body.fault("admin_otp", "unsupported", "must be optional or required")
	}
	if err := body.Err(invalidBody); err != nil {
		return err
	}
	if err := p.portal.RequireOTP(c.Request().Context(), account.ID, rule == "required"); err != nil {
		return err
	}

	return p.writeLoginRules(c, account.ID)
}
