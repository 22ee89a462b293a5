package dashboard

// The alerts whose runbooks say more about a panel.
const (
	alertClusterSilent    = "SpokeletClusterSilent"
	alertAddOns           = "SpokeletAddOnUnavailable"
	alertRolloutStopped   = "SpokeletRolloutStopped"
	alertHeld             = "SpokeletRemovalHeld"
	alertCertificate      = "SpokeletCertificateLate"
	alertAgentCertificate = "SpokeletAgentCertificateLate"
	alertEviction         = "SpokeletEvictionHeld"
	alertRender           = "SpokeletRenderFailing"
	alertHubUnreachable   = "SpokeletHubUnreachable"
	alertDeletionBlocked  = "SpokeletDeletionBlocked"
	alertDrift            = "SpokeletDriftRepeated"
	alertNoLeader         = "SpokeletHubManagerNotLeading"
	alertWebhook          = "SpokeletWebhookFailing"
)
