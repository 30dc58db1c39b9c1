// The radios of a simulated world in ns-3: 802.11a ad-hoc, each with an IPv4 stack and a routing protocol, driven over standard
// input and output by crates/cosim/src/ns3.rs, which describes the frames. docs/lockstep.md tells what is modelled.
//
// Built by `cargo xtask ns3 program` against ns-3.37 (Debian's libns3-dev).

#include <ns3/aodv-module.h>
#include <ns3/core-module.h>
#include <ns3/dsdv-module.h>
#include <ns3/internet-module.h>
#include <ns3/mobility-module.h>
#include <ns3/network-module.h>
#include <ns3/olsr-module.h>
#include <ns3/propagation-module.h>
#include <ns3/wifi-module.h>

#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

using namespace ns3;

namespace {

// Of the frames; the Rust side refuses another.
const uint16_t PROTOCOL = 3;
// Datagrams of the aircraft, and of the flows.
const uint16_t PORT = 14650, FLOW_PORT = 14651;
// It stops so long after a first arrival: what arrives elsewhere of the same frame comes along.
const Time GRACE = MicroSeconds(2);
const uint64_t NEVER = UINT64_MAX;
// Bits of a request.
const uint8_t STOPS_AT_ARRIVALS = 1, WANTS_USED = 2;

// Tells when the next event is.
class Peeking : public MapScheduler
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("Peeking").SetParent<MapScheduler>().AddConstructor<Peeking>();
        return tid;
    }
    Peeking() { s_last = this; }
    static uint64_t Next() { return s_last == nullptr || s_last->IsEmpty() ? NEVER : s_last->PeekNext().key.m_ts; }

  private:
    static Peeking* s_last;
};
Peeking* Peeking::s_last = nullptr;
NS_OBJECT_ENSURE_REGISTERED(Peeking);

struct Reception
{
    uint64_t at_ns;
    uint16_t to;
    uint32_t id;
};

struct Arrived
{
    uint64_t at_ns;
    uint32_t flow, bytes;
};

std::vector<Reception> g_received;
std::vector<Arrived> g_arrived;
EventId g_stop;
bool g_stops_at_arrivals = true;
NodeContainer g_all;

// Where all radios are from now on.
void Move(std::shared_ptr<std::vector<Vector>> places)
{
    for (size_t i = 0; i < places->size(); i++) {
        g_all.Get(static_cast<uint32_t>(i))->GetObject<MobilityModel>()->SetPosition((*places)[i]);
    }
}

// What this process has used of a processor.
uint64_t UsedNs()
{
    timespec used{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return static_cast<uint64_t>(used.tv_sec) * 1000000000 + static_cast<uint64_t>(used.tv_nsec);
}

void Ends() { Simulator::Stop(); }

void Received(uint16_t node, Ptr<Socket> socket)
{
    Ptr<Packet> packet;
    while ((packet = socket->Recv())) {
        uint8_t head[4];
        if (packet->CopyData(head, 4) != 4) {
            continue;
        }
        uint32_t id;
        std::memcpy(&id, head, 4);
        if (g_stops_at_arrivals && g_received.empty()) {
            const Time soon = Simulator::Now() + GRACE;
            if (Time(g_stop.GetTs()) > soon) {
                Simulator::Remove(g_stop);
                g_stop = Simulator::Schedule(GRACE, &Ends);
            }
        }
        g_received.push_back({static_cast<uint64_t>(Simulator::Now().GetNanoSeconds()), node, id});
    }
}

// What a flow brings is counted, and stops nothing.
void FlowArrived(Ptr<Socket> socket)
{
    Ptr<Packet> packet;
    while ((packet = socket->Recv())) {
        uint8_t head[4];
        if (packet->CopyData(head, 4) == 4) {
            uint32_t flow;
            std::memcpy(&flow, head, 4);
            g_arrived.push_back({static_cast<uint64_t>(Simulator::Now().GetNanoSeconds()), flow, packet->GetSize()});
        }
    }
}

void Send(Ptr<Socket> socket, uint32_t id, uint16_t bytes)
{
    std::vector<uint8_t> payload(std::max<uint16_t>(bytes, 4));
    std::memcpy(payload.data(), &id, 4);
    // What finds no room in the queue is lost.
    socket->Send(Create<Packet>(payload.data(), payload.size()));
}

// Constant bit rate from one radio to another.
struct Flow
{
    uint32_t index;
    uint16_t from, to;
    double kbit_s, begin_s, end_s;
    uint32_t payload;
    Ptr<Socket> socket;

    void Next()
    {
        if (Simulator::Now() >= Seconds(end_s)) {
            return;
        }
        Send(socket, index, static_cast<uint16_t>(payload));
        Simulator::Schedule(Seconds(payload * 8 / (kbit_s * 1e3)), &Flow::Next, this);
    }
};

// Standard input, read by one call for a frame.
class Input
{
  public:
    bool Read(void* to, size_t bytes)
    {
        while (m_end - m_begin < bytes) {
            if (m_begin > 0) {
                std::memmove(m_buffer.data(), m_buffer.data() + m_begin, m_end - m_begin);
                m_end -= m_begin;
                m_begin = 0;
            }
            if (m_buffer.size() < bytes) {
                m_buffer.resize(bytes);
            }
            const ssize_t got = read(STDIN_FILENO, m_buffer.data() + m_end, m_buffer.size() - m_end);
            if (got < 0 && errno == EINTR) {
                continue;
            }
            if (got <= 0) {
                return false;
            }
            m_end += static_cast<size_t>(got);
        }
        std::memcpy(to, m_buffer.data() + m_begin, bytes);
        m_begin += bytes;
        return true;
    }

  private:
    std::vector<uint8_t> m_buffer = std::vector<uint8_t>(1 << 16);
    size_t m_begin = 0, m_end = 0;
};

bool WriteAll(const std::vector<uint8_t>& from)
{
    size_t done = 0;
    while (done < from.size()) {
        const ssize_t put = write(STDOUT_FILENO, from.data() + done, from.size() - done);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put <= 0) {
            return false;
        }
        done += static_cast<size_t>(put);
    }
    return true;
}

template <typename T> void Put(std::vector<uint8_t>& to, T value)
{
    const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
    to.insert(to.end(), bytes, bytes + sizeof value);
}

// Reads a frame's fields; past its end they are zero and `broken` is set.
struct Fields
{
    const std::vector<uint8_t>& frame;
    size_t at = 0;
    bool broken = false;

    template <typename T> T Get()
    {
        T value{};
        if (frame.size() - at < sizeof value) {
            broken = true;
            at = frame.size();
        } else {
            std::memcpy(&value, frame.data() + at, sizeof value);
            at += sizeof value;
        }
        return value;
    }
};

// Where all nodes are each second, as ns-3's own reader of ns-2 mobility has it.
void PrintPlaces(double until_s)
{
    const double now_s = Simulator::Now().GetSeconds();
    for (uint32_t i = 0; i < g_all.GetN(); i++) {
        const Vector place = g_all.Get(i)->GetObject<MobilityModel>()->GetPosition();
        std::printf("%.0f %u %.3f %.3f %.3f\n", now_s, i, place.x, place.y, place.z);
    }
    if (std::floor(now_s) + 1 <= until_s) {
        Simulator::Schedule(Seconds(1), &PrintPlaces, until_s);
    }
}

int Refuse(const std::string& why)
{
    std::fprintf(stderr, "wingbeat-ns3: %s\n", why.c_str());
    return 2;
}

} // namespace

int main(int argc, char** argv)
{
    std::string routing = "none", flows_text, replayed;
    double until_s = 60;
    uint32_t nodes = 2, seed = 1, rate = 6;
    double exponent = 2.2, first_metre_db = 46.7, power_dbm = 30, range_m = 0, noise_figure_db = 7;
    CommandLine command(__FILE__);
    command.AddValue("nodes", "radios, 1 to 1000", nodes);
    command.AddValue("seed", "run of the random streams", seed);
    command.AddValue("routing", "none, aodv, olsr or dsdv", routing);
    command.AddValue("rate", "of every frame, 6, 9, 12, 18, 24, 36, 48 or 54 Mbit/s", rate);
    command.AddValue("exponent", "of log-distance loss", exponent);
    command.AddValue("first-metre-db", "loss over the first metre", first_metre_db);
    command.AddValue("range-m", "instead: all within this distance receive equally well, none beyond", range_m);
    command.AddValue("power-dbm", "of a radio, with the gains of both antennas", power_dbm);
    command.AddValue("noise-figure-db", "of a receiver", noise_figure_db);
    command.AddValue("flows", "from:to:kbit_s:payload:begin_s:end_s,...", flows_text);
    command.AddValue("ns2", "no medium: print where the nodes of this ns-2 mobility file are each second", replayed);
    command.AddValue("until-s", "end of that, seconds", until_s);
    command.Parse(argc, argv);
    if (nodes < 1 || nodes > 1000) {
        return Refuse("nodes: found " + std::to_string(nodes) + ", expected 1 to 1000");
    }
    RngSeedManager::SetSeed(1);
    RngSeedManager::SetRun(seed);
    ObjectFactory scheduler("Peeking");
    Simulator::SetScheduler(scheduler);

    g_all.Create(nodes);
    if (!replayed.empty()) {
        if (access(replayed.c_str(), R_OK) != 0) {
            return Refuse("ns2: found no file " + replayed);
        }
        Ns2MobilityHelper(replayed).Install();
        // After what the file moves at that time.
        Simulator::Schedule(MilliSeconds(5), [until_s] { PrintPlaces(until_s); });
        Simulator::Stop(Seconds(until_s + 1));
        Simulator::Run();
        return 0;
    }
    NodeContainer& all = g_all;
    MobilityHelper mobility;
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
    mobility.Install(all);

    YansWifiChannelHelper channel;
    channel.SetPropagationDelay("ns3::ConstantSpeedPropagationDelayModel");
    if (range_m > 0) {
        channel.AddPropagationLoss("ns3::FixedRssLossModel", "Rss", DoubleValue(-60));
        channel.AddPropagationLoss("ns3::RangePropagationLossModel", "MaxRange", DoubleValue(range_m));
    } else {
        channel.AddPropagationLoss("ns3::LogDistancePropagationLossModel", "Exponent", DoubleValue(exponent),
                                   "ReferenceLoss", DoubleValue(first_metre_db));
    }
    YansWifiPhyHelper phy;
    phy.SetChannel(channel.Create());
    phy.Set("TxPowerStart", DoubleValue(power_dbm));
    phy.Set("TxPowerEnd", DoubleValue(power_dbm));
    phy.Set("RxNoiseFigure", DoubleValue(noise_figure_db));
    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac");
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211a);
    const StringValue mode("OfdmRate" + std::to_string(rate) + "Mbps");
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode", mode, "ControlMode",
                                 StringValue("OfdmRate6Mbps"), "NonUnicastMode", mode);
    NetDeviceContainer devices = wifi.Install(phy, mac, all);
    InternetStackHelper stack;
    if (routing == "aodv") {
        stack.SetRoutingHelper(AodvHelper());
    } else if (routing == "olsr") {
        stack.SetRoutingHelper(OlsrHelper());
    } else if (routing == "dsdv") {
        stack.SetRoutingHelper(DsdvHelper());
    } else if (routing != "none") {
        return Refuse("routing: found " + routing + ", expected none, aodv, olsr or dsdv");
    }
    stack.Install(all);
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.0.0");
    const Ipv4InterfaceContainer interfaces = addresses.Assign(devices);

    std::vector<Ptr<Socket>> sockets(nodes);
    for (uint32_t i = 0; i < nodes; i++) {
        Ptr<Socket> receiver = Socket::CreateSocket(all.Get(i), UdpSocketFactory::GetTypeId());
        receiver->Bind(InetSocketAddress(Ipv4Address::GetAny(), PORT));
        receiver->SetRecvCallback(MakeBoundCallback(&Received, static_cast<uint16_t>(i)));
        Ptr<Socket> counter = Socket::CreateSocket(all.Get(i), UdpSocketFactory::GetTypeId());
        counter->Bind(InetSocketAddress(Ipv4Address::GetAny(), FLOW_PORT));
        counter->SetRecvCallback(MakeCallback(&FlowArrived));
        sockets[i] = Socket::CreateSocket(all.Get(i), UdpSocketFactory::GetTypeId());
        sockets[i]->SetAllowBroadcast(true);
        sockets[i]->Connect(InetSocketAddress(Ipv4Address("255.255.255.255"), PORT));
    }
    std::vector<Flow> flows;
    for (size_t at = 0; at < flows_text.size();) {
        const size_t end = std::min(flows_text.find(',', at), flows_text.size());
        const std::string one = flows_text.substr(at, end - at);
        Flow flow{};
        unsigned from, to;
        if (std::sscanf(one.c_str(), "%u:%u:%lf:%u:%lf:%lf", &from, &to, &flow.kbit_s, &flow.payload, &flow.begin_s,
                        &flow.end_s) != 6 ||
            from >= nodes || to >= nodes || from == to || !(flow.kbit_s > 0) || flow.payload < 4 || flow.payload > 1472) {
            return Refuse("flows: found " + one + ", expected from:to:kbit_s:payload:begin_s:end_s");
        }
        flow.index = static_cast<uint32_t>(flows.size());
        flow.from = static_cast<uint16_t>(from);
        flow.to = static_cast<uint16_t>(to);
        flows.push_back(flow);
        at = end + 1;
    }
    for (Flow& flow : flows) {
        flow.socket = Socket::CreateSocket(all.Get(flow.from), UdpSocketFactory::GetTypeId());
        flow.socket->Connect(InetSocketAddress(interfaces.GetAddress(flow.to), FLOW_PORT));
        Simulator::Schedule(Seconds(flow.begin_s), &Flow::Next, &flow);
    }

    std::vector<uint8_t> hello;
    const char* magic = "WBN3";
    hello.insert(hello.end(), magic, magic + 4);
    Put<uint16_t>(hello, PROTOCOL);
    if (!WriteAll(hello)) {
        return 1;
    }
    std::vector<uint8_t> frame, answer;
    Input input;
    while (true) {
        uint32_t length;
        if (!input.Read(&length, sizeof length)) {
            return 0;
        }
        if (length > (16u << 20)) {
            return Refuse("frame: found " + std::to_string(length) + " bytes, expected at most 16 MiB");
        }
        frame.resize(length);
        if (!input.Read(frame.data(), length)) {
            return 0;
        }
        Fields fields{frame};
        const auto until_ns = fields.Get<uint64_t>();
        const auto flags = fields.Get<uint8_t>();
        g_stops_at_arrivals = (flags & STOPS_AT_ARRIVALS) != 0;
        const auto now_ns = static_cast<uint64_t>(Simulator::Now().GetNanoSeconds());
        const auto moves = fields.Get<uint32_t>();
        for (uint32_t k = 0; k < moves && !fields.broken; k++) {
            const auto at_ns = fields.Get<uint64_t>();
            auto places = std::make_shared<std::vector<Vector>>(nodes);
            for (Vector& place : *places) {
                place.x = fields.Get<double>();
                place.y = fields.Get<double>();
                place.z = fields.Get<double>();
            }
            if (fields.broken) {
                break;
            }
            if (at_ns > now_ns) {
                Simulator::Schedule(NanoSeconds(at_ns - now_ns), &Move, places);
            } else {
                Move(places);
            }
        }
        const auto datagrams = fields.Get<uint32_t>();
        for (uint32_t i = 0; i < datagrams && !fields.broken; i++) {
            const auto at_ns = fields.Get<uint64_t>();
            const auto from = fields.Get<uint16_t>();
            const auto id = fields.Get<uint32_t>();
            const auto bytes = fields.Get<uint16_t>();
            if (from >= nodes) {
                return Refuse("datagram: found sender " + std::to_string(from) + " of " + std::to_string(nodes));
            }
            Simulator::Schedule(NanoSeconds(at_ns > now_ns ? at_ns - now_ns : 0), &Send, sockets[from], id, bytes);
        }
        if (fields.broken || fields.at != frame.size()) {
            return Refuse("frame: found " + std::to_string(length) + " bytes that are none");
        }
        g_received.clear();
        g_arrived.clear();
        if (until_ns > now_ns) {
            g_stop = Simulator::Schedule(NanoSeconds(until_ns - now_ns), &Ends);
            Simulator::Run();
        }
        answer.clear();
        Put<uint32_t>(answer, 0);
        Put<uint64_t>(answer, static_cast<uint64_t>(Simulator::Now().GetNanoSeconds()));
        Put<uint64_t>(answer, Peeking::Next());
        Put<uint64_t>(answer, (flags & WANTS_USED) != 0 ? UsedNs() : 0);
        Put<uint32_t>(answer, static_cast<uint32_t>(g_received.size()));
        for (const Reception& one : g_received) {
            Put<uint64_t>(answer, one.at_ns);
            Put<uint16_t>(answer, one.to);
            Put<uint32_t>(answer, one.id);
        }
        Put<uint32_t>(answer, static_cast<uint32_t>(g_arrived.size()));
        for (const Arrived& one : g_arrived) {
            Put<uint64_t>(answer, one.at_ns);
            Put<uint32_t>(answer, one.flow);
            Put<uint32_t>(answer, one.bytes);
        }
        const auto body = static_cast<uint32_t>(answer.size() - 4);
        std::memcpy(answer.data(), &body, 4);
        if (!WriteAll(answer)) {
            return 0;
        }
    }
}
