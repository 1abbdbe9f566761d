package ceph

import (
	"context"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/orch"
)

// The verbs of commands.
const (
	// verbOSDNew registers OSDs. Params maps each OSD, such as osd.3, to its uuid.
	verbOSDNew = "osd new"
	// verbAuthImport makes sure that an entity is in Ceph's auth database with its key and capabilities.
	verbAuthImport = "auth import"
	// verbAuthCaps gives an entity other capabilities. Params are the capabilities by what they concern.
	verbAuthCaps = "auth caps"
	// verbAuthRm takes an entity from Ceph's auth database.
	verbAuthRm = "auth rm"
	// verbNoout and verbUnsetNoout set and take away the flag noout of the OSDs that are the command's object. It is the flag
	// of each OSD and not of the host's CRUSH bucket: the mons heed it alike, it shows in the map that is read anyway, it goes
	// with the OSD, and it cannot be mistaken for one that an administrator has set.
	verbNoout      = "osd set-group noout"
	verbUnsetNoout = "osd unset-group noout"
	// verbReweight gives OSDs their weights in CRUSH, and with none has Ceph move the data off them. Params maps each OSD to its weight.
	verbReweight = "osd crush reweight"
	// verbOSDOut marks OSDs out that hold nothing any more, so that Ceph does not call it wrong that they are down, and verbOSDIn takes it back.
	verbOSDOut = "osd out"
	verbOSDIn  = "osd in"
	// verbOSDPurge has Ceph forget OSDs: their numbers, their place in CRUSH, and their keys.
	verbOSDPurge = "osd purge"
	// verbOSDDestroy has Ceph forget an OSD but for its number and its place in CRUSH, which another one is to have.
	verbOSDDestroy = "osd destroy"
	// verbCrushRm removes an empty bucket from CRUSH.
	verbCrushRm = "osd crush rm"
	// verbCrushMove puts hosts that are new where CRUSH is to have them. Params maps each, by its name in CRUSH, to its location, such as root=default rack=r1.
	verbCrushMove = "osd crush move"
	// verbCrushPut puts an OSD back that CRUSH does not have. Params maps it to its location.
	verbCrushPut = "osd crush create-or-move"
	// verbAdminKey puts the key of client.admin back, as the mons themselves.
	verbAdminKey = "auth import as mon."
	// verbMonRemove takes a mon out of Ceph's own map.
	verbMonRemove = "mon remove"
	// verbMgrFail has the active manager hand over to a standby.
	verbMgrFail = "mgr fail"
)

// verb is one thing that can be asked of Ceph: how it is done, what Ceph will say of itself when it is done, and what it may do to data
// and service. Each may be done again.
type verb struct {
	perform func(*conn, context.Context, request) error
	foresee func(*foresight, request)
	risk    api.Risk
}

// verbs are all that a plan may ask for. While the data of an OSD moves away no copy goes before another is there, so that taking its weight costs
// none; what is purged cannot be brought back, and stood for a copy or a mon until then.
var verbs = map[string]verb{
	verbOSDNew:     {(*conn).osdNew, (*foresight).osdNew, api.RiskNone},
	verbAuthImport: {(*conn).authImport, (*foresight).authImport, api.RiskNone},
	verbAuthRm:     {(*conn).authRm, (*foresight).authRm, api.RiskNone},
	verbNoout:      {(*conn).noout, (*foresight).noout, api.RiskNone},
	verbUnsetNoout: {(*conn).noout, (*foresight).noout, api.RiskNone},
	verbReweight:   {(*conn).reweight, (*foresight).reweight, api.RiskNone},
	verbOSDOut:     {(*conn).inOut, (*foresight).inOut, api.RiskNone},
	verbOSDIn:      {(*conn).inOut, (*foresight).inOut, api.RiskNone},
	verbOSDPurge:   {(*conn).purge, (*foresight).purge, api.RiskRedundancy},
	verbOSDDestroy: {(*conn).purge, (*foresight).destroy, api.RiskRedundancy},
	verbCrushRm:    {(*conn).removeNamed, (*foresight).crushRm, api.RiskNone},
	verbCrushMove:  {(*conn).crushMove, (*foresight).crushMove, api.RiskNone},
	verbCrushPut:   {performCrushPut, crushPutDone, api.RiskNone},
	verbAdminKey:   {performAdminKey, func(*foresight, request) {}, api.RiskNone},
	verbMonRemove:  {(*conn).removeNamed, (*foresight).monRemove, api.RiskRedundancy},
	verbMgrFail:    {(*conn).mgrFail, (*foresight).mgrFail, api.RiskRestart},

	orch.VerbBackend:       {performOrch, orchDone, api.RiskNone},
	orch.VerbModuleEnable:  {performOrch, orchDone, api.RiskRestart},
	orch.VerbModuleDisable: {performOrch, orchDone, api.RiskRestart},

	verbAuthCaps: {(*conn).authCaps, (*foresight).authCaps, api.RiskNone},

	verbConfigSet: {(*conn).configSet, (*foresight).configSet, api.RiskNone},
	verbConfigRm:  {(*conn).configRm, (*foresight).configRm, api.RiskNone},

	verbDefaultSet: {(*conn).configSet, (*foresight).defaultSet, api.RiskNone},
	verbDefaultRm:  {(*conn).configRm, (*foresight).defaultRm, api.RiskNone},

	verbPoolCreate:     {(*conn).poolCreate, (*foresight).poolCreate, api.RiskNone},
	verbPoolEnable:     {(*conn).poolEnable, (*foresight).poolEnable, api.RiskNone},
	verbPoolSet:        {(*conn).poolSet, (*foresight).poolSet, api.RiskNone},
	verbPoolQuota:      {(*conn).poolQuota, (*foresight).poolQuota, api.RiskNone},
	verbPoolDelete:     {(*conn).poolDelete, (*foresight).poolDelete, api.RiskData},
	verbRuleReplicated: {(*conn).ruleReplicated, (*foresight).ruleMade, api.RiskNone},
	verbRuleErasure:    {(*conn).ruleErasure, (*foresight).ruleMade, api.RiskNone},
	verbRuleRm:         {(*conn).ruleRm, (*foresight).ruleRm, api.RiskNone},
	verbProfileSet:     {(*conn).profileSet, (*foresight).profileSet, api.RiskNone},
	verbProfileRm:      {(*conn).ruleRm, (*foresight).profileRm, api.RiskNone},

	verbMirrorSchedule: {(*conn).mirrorSchedule, (*foresight).mirrorScheduled, api.RiskNone},

	verbFSNew:       {(*conn).fsNew, (*foresight).fsNew, api.RiskNone},
	verbFSSet:       {(*conn).fsSet, (*foresight).fsSet, api.RiskNone},
	verbFSAddPool:   {(*conn).fsAddPool, (*foresight).fsAddPool, api.RiskNone},
	verbFSRm:        {(*conn).fsRm, (*foresight).fsRm, api.RiskData},
	verbGroupCreate: {(*conn).groupCreate, (*foresight).groupMade, api.RiskNone},
	verbMDSFail:     {performMDSFail, func(*foresight, request) {}, api.RiskNone},
	verbGroupResize: {(*conn).groupResize, (*foresight).groupMade, api.RiskNone},
}
