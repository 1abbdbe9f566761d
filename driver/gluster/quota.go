package gluster

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// limitSizes has the sizes of volumes enforced where that is declared. A limit that was set and is not declared any more is lifted; one
// that somebody set by hand is left alone.
func (p *planner) limitSizes() {
	for _, v := range p.volumes {
		if v.declared == nil || v.pool == nil || v.refusal != "" || v.declared.DeletionTimestamp != nil || v.pool.State != glusterd.VolumeStarted {
			continue
		}
		p.limitSize(v)
	}
}

func (p *planner) limitSize(v *volume) {
	have, known := p.limit(v)
	want := int64(0)
	if v.declared.Spec.SizePolicy == api.SizeEnforced {
		want = v.accepted()
	}
	switch {
	case !known:
		return // what was set stays noted, to be lifted when it is wanted no more
	case want > 0 && have != want:
		why := fmt.Sprintf("its size of %s is enforced", v.status.Capacity)
		if l := v.declared.Status.Limit; l != nil && l.Value() == want {
			p.outside[glusterd.VerbQuota+" "+v.name] = true
			why = fmt.Sprintf("its limit was changed to %d bytes outside Holdfast: set back", have)
		}
		params := map[string]string{glusterd.ParamLimit: strconv.FormatInt(want, 10)}
		p.command(glusterd.VerbQuota, v.name, params, api.RiskNone, "%s", why)
	case want == 0 && have > 0 && v.status.Limit != nil:
		p.command(glusterd.VerbQuota, v.name, nil, api.RiskNone, "stop enforcing its size")
		return
	}
	v.status.Limit = nil
	if have > 0 && want > 0 {
		v.status.Limit = resource.NewQuantity(have, resource.BinarySI)
	}
}

// limit is how many bytes a volume may hold, 0 where there is no limit; known says whether a node that has a brick of it tells.
// A brick that was added or replaced has the limit when it is healed.
func (p *planner) limit(v *volume) (bytes int64, known bool) {
	if v.pool.Options[glusterd.OptionQuota] != "on" {
		return 0, true
	}
	for i := range v.pool.Bricks {
		b := &v.pool.Bricks[i]
		n, s := p.nodeOf(b), p.storeOf(b)
		if n == nil || s == nil || !n.running() || s.lost(b.Path) || s.Problem != "" {
			continue
		}
		bytes, known = max(bytes, s.stored(b.Path).Limit), true
	}
	return bytes, known
}
