package ceph

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/health"
	"github.com/holdfast-storage/holdfast/internal/words"
)

const (
	// maxChecks, maxDetail and maxCode are bounds of the API's schema; maxDetailText keeps the status short.
	maxChecks     = 64
	maxDetail     = 8
	maxDetailText = 256
	maxCode       = 64
)

// healthAnswer is what 'status' and 'health detail' say of the health; only the latter has Detail.
type healthAnswer struct {
	Status string `json:"status"`
	Checks map[string]struct {
		Severity string `json:"severity"`
		Muted    bool   `json:"muted"`
		Summary  struct {
			Message string `json:"message"`
		} `json:"summary"`
		Detail []struct {
			Message string `json:"message"`
		} `json:"detail"`
	} `json:"checks"`
}

// fill copies the checks into the observation, sorted by their codes: those that are muted by their codes alone.
func (h *healthAnswer) fill(o *Observation) {
	o.Health, o.Checks, o.Muted = h.Status, nil, nil
	for code, c := range h.Checks {
		code = words.Cut(code, maxCode)
		if c.Muted {
			o.Muted = append(o.Muted, code)
			continue
		}
		check := api.HealthCheck{Code: code, Severity: words.Cut(c.Severity, maxCode), Message: words.Cut(c.Summary.Message, maxMessage), Next: health.NextStep(code)}
		for _, d := range c.Detail[:min(len(c.Detail), maxDetail)] {
			check.Detail = append(check.Detail, words.Cut(strings.TrimSpace(d.Message), maxDetailText))
		}
		o.Checks = append(o.Checks, check)
	}
	slices.SortFunc(o.Checks, func(a, b api.HealthCheck) int { return strings.Compare(a.Code, b.Code) })
	slices.Sort(o.Muted)
}

// fillHealth asks what exactly is wrong, where something is.
func (c *conn) fillHealth(ctx context.Context, _ *statusAnswer, o *Observation) error {
	if len(o.Checks) == 0 {
		return nil
	}
	out, err := c.client.Mon(ctx, command{"prefix": "health", "detail": "detail", "format": "json"}, nil)
	if err != nil {
		return err
	}
	var detail healthAnswer
	if err := json.Unmarshal(out, &detail); err != nil {
		return err
	}
	detail.fill(o)
	return nil
}

// hasCheck says whether Ceph finds something wrong that is not muted.
func (o *Observation) hasCheck(code string) bool {
	return slices.ContainsFunc(o.Checks, func(c api.HealthCheck) bool { return c.Code == code })
}
