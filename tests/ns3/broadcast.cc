// One operating point of 802.11a broadcast in ns-3: radios that send a UDP broadcast of one size at a rate each. Prints
// delivery, share of frames that overlapped, and access delay (mean, 50, 95 and 99 %, milliseconds); docs/medium.md
// describes the scenario.
//
//   broadcast --geometry=equal|discMETRES --nodes=100 --payload=705 --rate=5 --seed=1 --seconds=31
//
// Built by `cargo xtask ns3` against ns-3.37 (Debian's libns3-dev).

#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/mobility-module.h>
#include <ns3/network-module.h>
#include <ns3/propagation-module.h>
#include <ns3/wifi-module.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <unordered_map>
#include <vector>

using namespace ns3;

namespace {

const uint16_t PORT = 14650;
// Left out at the beginning.
const Time WARM_UP = Seconds(1);

// What was measured after the warm-up.
struct Measured {
    uint64_t frames = 0;
    uint64_t overlapped = 0;
    uint64_t receptions = 0;
    std::vector<double> delays_ms;
};

Measured g_measured;
// When the application sent a packet, by the packet's id.
std::unordered_map<uint64_t, Time> g_sent;
// The frame that ends last, and whether it is already counted as overlapped.
Time g_lastEnd;
bool g_lastOverlapped = false;
bool g_lastCounts = false;
Time g_airtime;

void Received(Ptr<Socket> socket)
{
    while (socket->Recv()) {
        if (Simulator::Now() >= WARM_UP) {
            g_measured.receptions++;
        }
    }
}

void PhyTxBegin(Ptr<const Packet> packet, double)
{
    const Time now = Simulator::Now();
    const bool counts = now >= WARM_UP;
    const bool overlaps = now < g_lastEnd;
    if (overlaps && !g_lastOverlapped && g_lastCounts) {
        g_measured.overlapped++;
    }
    if (counts) {
        g_measured.frames++;
        g_measured.overlapped += overlaps;
    }
    // All frames are of one length: the one that began last ends last.
    g_lastEnd = now + g_airtime;
    g_lastOverlapped = overlaps;
    g_lastCounts = counts;
    const auto sent = g_sent.find(packet->GetUid());
    if (sent != g_sent.end()) {
        if (counts) {
            g_measured.delays_ms.push_back((now - sent->second).GetSeconds() * 1e3);
        }
        g_sent.erase(sent);
    }
}

// Sends for ever, each period drawn within 10 % of the mean.
struct Sender {
    Ptr<Socket> socket;
    uint32_t payload;
    double period_s;
    Ptr<UniformRandomVariable> random;

    void Send()
    {
        Ptr<Packet> packet = Create<Packet>(payload);
        g_sent[packet->GetUid()] = Simulator::Now();
        socket->Send(packet);
        const double jitter = random->GetValue(0.9, 1.1);
        Simulator::Schedule(Seconds(period_s * jitter), &Sender::Send, this);
    }
};

double Quantile(std::vector<double>& sorted, double share)
{
    if (sorted.empty()) {
        return 0;
    }
    const auto rank = static_cast<size_t>(std::ceil(share * sorted.size()));
    return sorted[std::min(std::max<size_t>(rank, 1), sorted.size()) - 1];
}

} // namespace

int main(int argc, char** argv)
{
    std::string geometry = "equal";
    uint32_t nodes = 100, payload = 705, seed = 1;
    double rate = 5, seconds = 31;
    CommandLine command(__FILE__);
    command.AddValue("geometry", "equal (-60 dBm everywhere) or discMETRES (anywhere in a disc of that radius)", geometry);
    command.AddValue("nodes", "radios, 2 to 1000", nodes);
    command.AddValue("payload", "UDP payload, bytes", payload);
    command.AddValue("rate", "datagrams of each radio in a second", rate);
    command.AddValue("seed", "run of the random streams", seed);
    command.AddValue("seconds", "simulated, of which the first is not counted", seconds);
    command.Parse(argc, argv);
    const bool equal = geometry == "equal";
    const double radius_m = equal ? 30 : geometry.rfind("disc", 0) == 0 ? std::atof(geometry.c_str() + 4) : 0;
    if (!(radius_m > 0) || nodes < 2 || nodes > 1000 || payload < 1 || payload > 1472 || rate <= 0 ||
        seconds <= 1) {
        std::fprintf(stderr, "broadcast: found geometry %s, %u nodes, %u bytes, rate %g, %g s; expected equal or discMETRES, "
                             "2 to 1000, 1 to 1472, more than 0, more than 1\n",
                     geometry.c_str(), nodes, payload, rate, seconds);
        return 2;
    }
    RngSeedManager::SetSeed(1);
    RngSeedManager::SetRun(seed);

    NodeContainer all;
    all.Create(nodes);
    MobilityHelper mobility;
    Ptr<ListPositionAllocator> places = CreateObject<ListPositionAllocator>();
    Ptr<UniformRandomVariable> random = CreateObject<UniformRandomVariable>();
    for (uint32_t i = 0; i < nodes; i++) {
        const double radius = radius_m * std::sqrt(random->GetValue(0, 1)), angle = random->GetValue(0, 2 * M_PI);
        places->Add(Vector(radius * std::cos(angle), radius * std::sin(angle), 0));
    }
    mobility.SetPositionAllocator(places);
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
    mobility.Install(all);

    YansWifiChannelHelper channel;
    channel.SetPropagationDelay("ns3::ConstantSpeedPropagationDelayModel");
    if (equal) {
        channel.AddPropagationLoss("ns3::FixedRssLossModel", "Rss", DoubleValue(-60));
    } else {
        channel.AddPropagationLoss("ns3::LogDistancePropagationLossModel", "Exponent", DoubleValue(2.7));
    }
    YansWifiPhyHelper phy;
    phy.SetChannel(channel.Create());
    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac");
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211a);
    const StringValue mode("OfdmRate6Mbps");
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode", mode, "ControlMode", mode,
                                 "NonUnicastMode", mode);
    NetDeviceContainer devices = wifi.Install(phy, mac, all);
    InternetStackHelper().Install(all);
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.0.0");
    addresses.Assign(devices);

    // Payload, UDP, IP, LLC/SNAP, MAC header and FCS; 16 service and 6 tail bits, symbols of 24 bits.
    const uint64_t bits = 22 + 8 * (payload + 8 + 20 + 8 + 24 + 4);
    g_airtime = MicroSeconds(20 + 4 * ((bits + 23) / 24));

    std::vector<Sender> senders(nodes);
    for (uint32_t i = 0; i < nodes; i++) {
        Ptr<Socket> receiver = Socket::CreateSocket(all.Get(i), UdpSocketFactory::GetTypeId());
        receiver->Bind(InetSocketAddress(Ipv4Address::GetAny(), PORT));
        receiver->SetRecvCallback(MakeCallback(&Received));
        Ptr<Socket> socket = Socket::CreateSocket(all.Get(i), UdpSocketFactory::GetTypeId());
        socket->SetAllowBroadcast(true);
        socket->Connect(InetSocketAddress(Ipv4Address("10.0.255.255"), PORT));
        senders[i] = {socket, payload, 1 / rate, CreateObject<UniformRandomVariable>()};
        Simulator::Schedule(Seconds(random->GetValue(0, 1 / rate)), &Sender::Send, &senders[i]);
        DynamicCast<WifiNetDevice>(devices.Get(i))
            ->GetPhy()
            ->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&PhyTxBegin));
    }

    const std::clock_t began = std::clock();
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    const double core_s = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
    Simulator::Destroy();

    auto& delays = g_measured.delays_ms;
    std::sort(delays.begin(), delays.end());
    double sum = 0;
    for (const double delay : delays) {
        sum += delay;
    }
    const double possible = static_cast<double>(g_measured.frames) * (nodes - 1);
    // cargo xtask ns3 reads this line.
    std::printf("%.6f,%.6f,%.4f,%.4f,%.4f,%.4f\n", g_measured.receptions / possible,
                static_cast<double>(g_measured.overlapped) / g_measured.frames,
                delays.empty() ? 0 : sum / delays.size(), Quantile(delays, 0.5), Quantile(delays, 0.95),
                Quantile(delays, 0.99));
    // And cargo xtask bench medium this one.
    std::fprintf(stderr, "ns-3: %lu receptions, %.3f s of one core\n", static_cast<unsigned long>(g_measured.receptions),
                 core_s);
    return 0;
}
